/* SPDX-License-Identifier: MIT */
/* The tests of api.c in C++17, and what only C++ has. */
#include "api.c"

#include <string>

namespace shop
{

KILROY_EVENT(sale, "test.sale", (u32, count), (str, item));

/* As a class in a header does it: the function may exist in many files, and so may the type. */
class counter
{
      public:
	void sell(const std::string &item)
	{
		KILROY_RECORD(sale, ++count, item.c_str());
	}

	uint32_t count = 0;
};

inline void sell_inline(const char *item)
{
	KILROY_RECORD(sale, 9, item);
}

template <typename T> void sell_any(T count)
{
	KILROY_RECORD(sale, count, "any");
}

} // namespace shop

TEST(member_functions_record)
{
	shop::counter c;

	begin();
	c.sell(std::string("apple"));
	WANT(uint32_t, 1);
	want_content("apple", 5);
	CHECK_PAYLOAD();
}

TEST(inline_functions_record)
{
	begin();
	shop::sell_inline("pear");
	WANT(uint32_t, 9);
	want_content("pear", 4);
	CHECK_PAYLOAD();
}

TEST(templates_and_lambdas_record)
{
	begin();
	[] { shop::sell_any<uint16_t>(3); }();
	WANT(uint32_t, 3);
	want_content("any", 3);
	CHECK_PAYLOAD();
}

TEST_MAIN()
