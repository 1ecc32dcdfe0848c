/** Counts of dynamic lists in listings: remembered for a minute, and never more than a second's work for a page. */
import t from 'tap'
import type { List } from '../../src/audience/lists/list-store.js'
import { MemberCounts } from '../../src/audience/lists/member-counts.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'

const listOf = (id: string, more: Partial<List> = {}): List => ({
  ...{ seq: 1, id, workspaceId: 'w1', name: id, description: null, type: 'dynamic' },
  ...{ conditions: { match: 'all', rules: [] }, isPublic: false, doubleOptIn: false },
  ...{ memberCount: 0, createdAt: 0, updatedAt: 0, ...more },
})

t.test('a count is at most a minute old and is recounted when the conditions change', async t => {
  const clock = new FakeClock()
  let members = 1
  const counts = new MemberCounts(clock, () => Promise.resolve(members))
  const countOf = async (list: List) => (await counts.ofPage([list])).get(list.id)
  t.equal(await countOf(listOf('a')), 1)
  t.equal(await countOf(listOf('s', { type: 'static', memberCount: 7 })), 7)
  members = 2
  t.equal(await countOf(listOf('a')), 1)
  t.equal(await countOf(listOf('a', { updatedAt: 5 })), 2)
  clock.skip(60_000)
  t.equal(await countOf(listOf('a')), 2)
})

t.test('lists that a second does not suffice for keep their last count, or have none yet', async t => {
  const clock = new FakeClock()
  let [members, takesMs] = [1, 0]
  const counts = new MemberCounts(clock, async (_, mayGoOn) => {
    await clock.advance(takesMs)
    mayGoOn()
    return members
  })
  const page = [listOf('a'), listOf('b')]
  t.same([...(await counts.ofPage([page[0]!]))], [['a', 1]])
  await clock.advance(60_000)
  ;[members, takesMs] = [2, 700]
  t.same(
    [...(await counts.ofPage([listOf('c'), ...page]))],
    [
      ['c', 2],
      ['a', 1],
    ],
  )
})
