/* SHA-256, halves, JSON, words, lines, quantiles: the parts without state. */
#include <fcntl.h>
#include <math.h>
#include <unistd.h>

#include "check.h"
#include "half.h"
#include "json_out.h"
#include "lines.h"
#include "quantile.h"
#include "sha256.h"
#include "words.h"

static void sha256_vectors(void) {
    static const struct {
        const char *text, *hex;
    } vectors[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    char hex[SHA256_HEX_SIZE];
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        sha256_of(vectors[i].text, strlen(vectors[i].text), hex);
        CHECK_TEXT(hex, vectors[i].hex);
    }
    struct sha256 s; /* a million times "a", in pieces of every size that straddles a block */
    char as[200];
    memset(as, 'a', sizeof as);
    sha256_init(&s);
    for (size_t done = 0, piece = 1; done < 1000000; done += piece, piece = piece % 199 + 1) {
        piece = piece < 1000000 - done ? piece : 1000000 - done;
        sha256_update(&s, as, piece);
    }
    sha256_hex(&s, hex);
    CHECK_TEXT(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void halves_survive_a_round_trip(void) {
    for (uint32_t bits = 0; bits < 65536; bits++) {
        float value = half_to_float((uint16_t)bits);
        bool is_nan = (bits & 0x7c00u) == 0x7c00u && (bits & 0x3ffu) != 0;
        CHECK(is_nan == (isnan(value) != 0));
        uint16_t back = half_from_double((double)value);
        CHECK(is_nan ? (back & 0x7e00u) == 0x7e00u : back == bits);
    }
}

/* Between any two neighbours: below, at and above the tie. */
static void halves_round_to_nearest_even(void) {
    for (uint16_t bits = 0; bits < 0x7bff; bits++) {
        uint16_t above = (uint16_t)(bits + 1);
        double low = (double)half_to_float(bits), high = (double)half_to_float(above);
        double tie = (low + high) / 2;
        uint16_t even = (bits & 1) == 0 ? bits : above;
        CHECK(half_from_double(nextafter(tie, 0)) == bits);
        CHECK(half_from_double(nextafter(tie, INFINITY)) == above);
        CHECK(half_from_double(tie) == even);
        CHECK(half_from_double(-tie) == (even | 0x8000));
    }
    CHECK(half_from_double(65519.999) == 0x7bff); /* 65504 */
    CHECK(half_from_double(65520) == 0x7c00);     /* infinity */
    CHECK(half_from_double(2049) == 0x6800 && half_from_double(2051) == 0x6802);
    /* Through float this would round twice: the float nearest to it is the tie itself. */
    CHECK(half_from_double(1 + 0x1p-11 + 0x1p-40) == 0x3c01);
}

static void json_escapes(void) {
    struct json j = {0};
    const char bytes[] = "a\"\\\n\x1b\x7f\xe2\x80\xae<script>\0z";
    json_open(&j, '{');
    json_key(&j, "k");
    json_bytes(&j, bytes, sizeof bytes - 1);
    json_field_u64(&j, "n", UINT64_MAX);
    const int64_t values[] = {-1, 2};
    json_field_i64s(&j, "list", values, 2);
    json_key(&j, "empty");
    json_open(&j, '[');
    json_close(&j, ']');
    json_close(&j, '}');
    json_newline(&j);
    CHECK(json_ok(&j));
    CHECK_TEXT(j.data, "{\"k\":\"a\\u0022\\u005c\\u000a\\u001b\\u007f\\u00e2\\u0080\\u00ae<script>"
                       "\\u0000z\",\"n\":18446744073709551615,\"list\":[-1,2],\"empty\":[]}\n");
    json_free(&j);
}

static void json_numbers(void) {
    static const double values[] = {0,     -0.0,   1,         0.1,      1.0 / 3,
                                    1e300, 5e-324, 123456789, INFINITY, -INFINITY};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        struct json j = {0};
        json_num(&j, values[i]);
        const char *text = j.data[0] == '"' ? j.data + 1 : j.data;
        CHECK(strtod(text, NULL) == values[i]);
        CHECK((j.data[0] == '"') == (isinf(values[i]) != 0));
        json_free(&j);
    }
    struct json j = {0};
    json_num(&j, NAN);
    CHECK_TEXT(j.data, "\"nan\"");
    json_free(&j);
}

static void numbers_are_strict(void) {
    uint64_t value = 0;
    double tolerance = 0;
    CHECK(word_u64("18446744073709551615", 0, UINT64_MAX, &value) && value == UINT64_MAX);
    static const char *const bad[] = {"18446744073709551616", "-1", "+1", "1.0", "0x1", "", " 1"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK(!word_u64(bad[i], 0, UINT64_MAX, &value));
    }
    CHECK(word_tolerance("1e-3", &tolerance) && tolerance == 1e-3);
    static const char *const wild[] = {"nan", "inf", "-1", "0x1p3", "1e999", "", "e", "1e", "1 "};
    for (size_t i = 0; i < sizeof wild / sizeof wild[0]; i++) {
        CHECK(!word_tolerance(wild[i], &tolerance));
    }
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void quantiles_agree_with_sorting(void) {
    uint32_t seed = 1;
    for (size_t count = 1; count < 400; count++) {
        double values[400], sorted[400];
        for (size_t i = 0; i < count; i++) { /* every third round is full of equal values */
            seed = seed * 1664525u + 1013904223u;
            values[i] = count % 3 == 0 ? seed >> 30 : count % 3 == 1 ? seed >> 8 : (double)i;
        }
        memcpy(sorted, values, sizeof sorted);
        qsort(sorted, count, sizeof sorted[0], by_value);
        static const double qs[] = {0, 0.5, 0.99, 1};
        for (size_t k = 0; k < 4; k++) {
            double rank = ceil(qs[k] * (double)count);
            size_t index = rank < 1 ? 0 : (size_t)rank - 1;
            CHECK(quantile(values, count, qs[k]) == sorted[index]);
        }
    }
    CHECK(isnan(quantile(NULL, 0, 0.5)));
}

static void lines_are_cut_within_bounds(void) {
    int ends[2];
    struct lines l = {0};
    size_t size = 0;
    CHECK(pipe(ends) == 0 && fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0);
    CHECK(lines_read(&l, ends[0]) == LINES_NOTHING);
    CHECK(write(ends[1], "one\n\ntw", 7) == 7 && lines_read(&l, ends[0]) == LINES_MORE);
    const char *line = lines_next(&l, &size);
    CHECK(line != NULL && size == 3 && memcmp(line, "one", 3) == 0);
    line = lines_next(&l, &size);
    CHECK(line != NULL && size == 0 && lines_next(&l, &size) == NULL);
    CHECK(write(ends[1], "o\n", 2) == 2 && lines_read(&l, ends[0]) == LINES_MORE);
    line = lines_next(&l, &size);
    CHECK(line != NULL && size == 3 && memcmp(line, "two", 3) == 0);
    enum lines_state state = LINES_MORE;
    char noise[4096];
    memset(noise, 'x', sizeof noise);
    for (size_t sent = 0; sent < 2u * LINES_MAX && state != LINES_BAD; sent += sizeof noise) {
        CHECK(write(ends[1], noise, sizeof noise) == sizeof noise);
        state = lines_read(&l, ends[0]);
    }
    CHECK(state == LINES_BAD);
    CHECK(close(ends[1]) == 0 && close(ends[0]) == 0);
    lines_free(&l);
}

int main(void) {
    sha256_vectors();
    halves_survive_a_round_trip();
    halves_round_to_nearest_even();
    json_escapes();
    json_numbers();
    numbers_are_strict();
    quantiles_agree_with_sorting();
    lines_are_cut_within_bounds();
    return 0;
}
