"""Leases and holds in a real Redis: one winner, tokens that only grow, and holds that keep workers out."""

import threading
from dataclasses import replace

from orchestrator.domain.lease import Hold
from orchestrator.domain.names import hold_key, lease_key, token_key
from orchestrator.storage.leases import Leases
from orchestrator.storage.redis_client import RedisClient, connect
from tests.unit.execution.redis_fixture import raw_client, seconds_left

HOLD = Hold("lease-held", "anna@buildhost", "new battery", "2026-11-30T12:00:00+00:00", "R58", "shelf-1")


def test_g2_04_of_fifty_claimers_one_wins_each_of_200_rounds(redis_url: str) -> None:
    """G2-04: exactly one winner a round, and each round's token is larger than the one before."""
    rounds, claimers = 200, 50
    clients = [connect(redis_url) for _ in range(claimers)]
    together = threading.Barrier(claimers, timeout=60)  # one that fails breaks it for all
    tokens: list[list[int]] = [[] for _ in range(rounds)]

    def compete(me: int) -> None:
        leases = Leases(clients[me])
        for won in tokens:
            together.wait()
            lease = leases.claim("lease-race", f"claimer-{me}", ttl_s=600)
            if lease is not None:
                won.append(lease.token)
            together.wait()
            if lease is not None:
                leases.end(lease)

    threads = [threading.Thread(target=compete, args=(n,)) for n in range(claimers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for found in clients:
        found.close()
    assert [len(won) for won in tokens] == [1] * rounds
    order = [won[0] for won in tokens]
    assert order == sorted(set(order))


def test_a_lease_ends_by_itself_in_the_servers_time(client: RedisClient, redis_url: str) -> None:
    leases = Leases(client)
    assert leases.claim("lease-ends", "one", ttl_s=0.001) is not None
    raw = raw_client(redis_url)
    while raw.exists(lease_key("lease-ends")):
        pass
    raw.close()
    assert leases.claim("lease-ends", "two", ttl_s=30) is not None
    assert 0 < seconds_left(redis_url, lease_key("lease-ends")) <= 30
    assert seconds_left(redis_url, token_key("lease-ends")) == -1


def test_renewal_is_for_the_holder_alone(client: RedisClient) -> None:
    leases = Leases(client)
    first = leases.claim("lease-renew", "one", ttl_s=600)
    assert first is not None
    assert leases.renew(first)
    leases.end(first)
    second = leases.claim("lease-renew", "two", ttl_s=600)
    assert second is not None
    assert not leases.renew(first)
    leases.end(first)  # no longer its own
    assert leases.renew(second)


def test_a_lease_that_ended_unseen_comes_back_unless_somebody_had_the_device(client: RedisClient) -> None:
    leases = Leases(client)
    lease = leases.claim("lease-back", "one", ttl_s=600)
    assert lease is not None
    client.delete(lease_key("lease-back"))  # Redis was away for longer than the lease
    assert leases.renew(lease)
    client.delete(lease_key("lease-back"))
    client.delete(token_key("lease-back"))  # and came back empty
    assert leases.renew(lease)
    client.delete(lease_key("lease-back"))
    between = leases.claim("lease-back", "two", ttl_s=600)
    assert between is not None
    leases.end(between)
    assert not leases.renew(lease)


def test_tokens_grow_over_a_redis_that_lost_everything(client: RedisClient) -> None:
    leases = Leases(client)
    before = leases.claim("lease-grow", "one", ttl_s=600)
    client.delete(lease_key("lease-grow"))
    client.delete(token_key("lease-grow"))
    after = leases.claim("lease-grow", "two", ttl_s=600)
    assert before is not None
    assert after is not None
    assert after.token > before.token


def test_tokens_grow_also_when_the_servers_clock_goes_back(client: RedisClient) -> None:
    ahead = 9_000_000_000_000_000
    client.set(token_key("lease-clock"), str(ahead), ex=600)
    lease = Leases(client).claim("lease-clock", "one", ttl_s=600)
    assert lease is not None
    assert lease.token == ahead + 1


def test_a_hold_keeps_workers_out_until_it_is_released(client: RedisClient) -> None:
    leases = Leases(client)
    assert leases.hold(HOLD)
    assert not leases.hold(HOLD)
    assert leases.claim("lease-held", "one") is None
    assert leases.held("lease-held") == HOLD
    assert leases.holds()["lease-held"] == HOLD
    assert leases.release(HOLD)
    assert not leases.release(HOLD)
    assert leases.held("lease-held") is None
    assert leases.claim("lease-held", "one") is not None
    client.delete(lease_key("lease-held"))


def test_the_hold_of_another_person_stays(client: RedisClient) -> None:
    """Who released it read it before that one was made."""
    leases, theirs = Leases(client), replace(HOLD, by="ben@desk")
    assert leases.hold(theirs)
    assert not leases.release(HOLD)
    assert leases.held("lease-held") == theirs
    assert leases.release(theirs)


def test_a_hold_that_cannot_be_read_can_be_released(client: RedisClient) -> None:
    leases = Leases(client)
    for text in ('{"wire": 99}', "\x00no JSON"):
        client.set(hold_key("lease-odd"), text, ex=60)
        held = leases.held("lease-odd")
        assert held is not None
        assert "cannot be read" in held.why
        assert leases.claim("lease-odd", "one") is None
        assert leases.release(held)


def test_a_hold_waits_for_the_running_lease_and_fences_it_off(client: RedisClient) -> None:
    leases = Leases(client)
    lease = leases.claim("lease-fence", "one", ttl_s=600)
    assert lease is not None
    leases.hold(Hold("lease-fence", "anna@buildhost", "look", "2026-11-30T12:00:00+00:00"))
    assert leases.renew(lease)  # the batch may end
    assert not leases.fence("lease-fence")
    client.delete(lease_key("lease-fence"))  # its worker was paused for too long
    assert leases.fence("lease-fence")
    assert not leases.renew(lease)
    newest = client.get(token_key("lease-fence"))
    assert newest is not None
    assert int(newest) > lease.token


def test_a_hold_that_nobody_waited_out_fences_off_who_was_paused_through_it(client: RedisClient) -> None:
    """Ctrl-C ends the waiting of `tilefarm hold`, and with it whoever raises the token."""
    leases, mine = Leases(client), replace(HOLD, device_id="lease-impatient")
    lease = leases.claim("lease-impatient", "one", ttl_s=600)
    assert lease is not None
    leases.hold(mine)
    client.delete(lease_key("lease-impatient"))  # it ended by itself
    assert leases.release(mine)
    assert not leases.renew(lease)


def test_a_hold_that_ends_before_the_batch_takes_nothing_from_it(client: RedisClient) -> None:
    leases, mine = Leases(client), replace(HOLD, device_id="lease-short")
    lease = leases.claim("lease-short", "one", ttl_s=600)
    assert lease is not None
    leases.hold(mine)
    assert leases.release(mine)
    assert leases.renew(lease)
    leases.end(lease)
