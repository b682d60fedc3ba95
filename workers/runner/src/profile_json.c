/* Writing the profile record; see profile_json.h. */
#include "profile_json.h"

#include "driver_json.h"

static void put_flag(struct json *j, const char *key, bool value) {
    json_key(j, key);
    json_bool(j, value);
}

static void put_limits(const struct limits *limits, struct json *j) {
    bool imposed = false;
    json_key(j, "limits");
    json_open(j, '{');
    for (int i = 0; i < LIMIT_COUNT; i++) {
        json_field_u64(j, limit_name((enum limit)i), limits->value[i]);
        imposed = imposed || limits->imposed[i];
    }
    json_close(j, '}');
    for (int i = 0; i < FEATURE_COUNT; i++) {
        imposed = imposed || limits->without[i];
    }
    put_flag(j, "imposed", imposed);
    json_key(j, "imposed_limits");
    json_open(j, '[');
    for (int i = 0; i < LIMIT_COUNT; i++) {
        if (limits->imposed[i]) {
            json_str(j, limit_name((enum limit)i));
        }
    }
    for (int i = 0; i < FEATURE_COUNT; i++) {
        if (limits->without[i]) {
            json_str(j, feature_name((enum feature)i));
        }
    }
    json_close(j, ']');
}

static bool is_advertised(const struct device *d, enum feature feature) {
    return d->advertised.has[feature] && !d->limits.without[feature];
}

static void put_features(const struct device *d, const struct probe_board *board, struct json *j) {
    const struct backend *b = d->backend;
    json_key(j, "advertised");
    json_open(j, '{');
    for (size_t i = 0; i < b->proof_count; i++) {
        put_flag(j, feature_name(b->proofs[i].feature), is_advertised(d, b->proofs[i].feature));
    }
    json_close(j, '}');
    json_key(j, "features");
    json_open(j, '{');
    for (size_t i = 0; i < b->proof_count; i++) {
        enum feature feature = b->proofs[i].feature;
        put_flag(j, feature_name(feature), atomic_load(&board->states[feature]) == PROOF_GOOD);
    }
    json_close(j, '}');
    json_key(j, "unproven");
    json_open(j, '{');
    for (size_t i = 0; i < b->proof_count; i++) {
        enum feature feature = b->proofs[i].feature;
        if (atomic_load(&board->states[feature]) == PROOF_FAILED) {
            json_field_str(j, feature_name(feature), board->reasons[feature]);
        }
    }
    json_close(j, '}');
}

static void put_subgroup(const struct facts *facts, const struct probe_board *board,
                         struct json *j) {
    json_key(j, "subgroup");
    json_open(j, '{');
    json_field_u64(j, "advertised", facts->subgroup);
    json_field_u64(j, "measured", atomic_load(&board->subgroup));
    json_field_u64(j, "min", facts->subgroup_min);
    json_field_u64(j, "max", facts->subgroup_max);
    json_close(j, '}');
}

static void put_facts(const struct facts *facts, struct json *j) {
    json_key(j, "float_controls");
    json_open(j, '{');
    for (size_t i = 0; i < facts->float_control_count; i++) {
        put_flag(j, facts->float_controls[i].name, facts->float_controls[i].on);
    }
    json_close(j, '}');
    json_key(j, "matrices");
    json_open(j, '[');
    for (size_t i = 0; i < facts->matrix_count; i++) {
        json_str(j, facts->matrices[i]);
    }
    json_close(j, ']');
    json_field_num(j, "timer_period_ns", facts->timer_period_ns);
}

static void put_driver(const struct driver_info *driver, struct json *j) {
    json_field_str(j, "adapter", driver->adapter);
    json_field_str(j, "device_type", driver->device_type);
    json_key(j, "driver");
    json_open(j, '{');
    if (driver->name[0] != '\0' || driver->id[0] != '\0') {
        json_field_str(j, "id", driver->id);
        json_field_str(j, "name", driver->name);
        json_field_str(j, "info", driver->info);
        json_field_str(j, "conformance", driver->conformance);
    }
    json_close(j, '}');
}

static void add_extension(void *arg, const char *name) {
    json_str(arg, name);
}

void profile_json_begin(struct device *device, struct json *j) {
    json_open(j, '{');
    json_field_str(j, "type", "profile");
    json_field_u64(j, "format", 1);
    driver_json(device, j);
    put_driver(&device->driver, j);
    put_limits(&device->limits, j);
    json_key(j, "extensions");
    json_open(j, '[');
    device->backend->extensions(device, add_extension, j);
    json_close(j, ']');
}

void profile_json_end(const struct device *facts, const struct probe_board *board, struct json *j) {
    put_features(facts, board, j);
    put_subgroup(&facts->facts, board, j);
    put_facts(&facts->facts, j);
    json_field_u64(j, "timer_bits", (uint64_t)facts->timer_bits);
    json_close(j, '}');
    json_newline(j);
}
