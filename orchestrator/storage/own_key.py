"""Scripts for keys that one process has at a time, whose value says which."""

# KEYS: the key. ARGV: whose it is, seconds. Whoever was paused until another one had it gets 0, not the key.
KEEP = """
local held = redis.call('GET', KEYS[1])
if held and held ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
return 1
"""
# KEYS: the key. ARGV: whose it is. Another one may have it by now: theirs stays.
GIVE_BACK = """
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
"""
