/** The statement by which nodes divide a limit. */
import t from 'tap'
import { deleteEndedUses, drawLimits } from '../../src/cluster/limit-use-store.js'
import { onPostgres } from '../support/db/database.js'

const asked = { name: 'a', limit: 100, used: 0, need: 10, extra: 0, keepMs: 60_000 }

onPostgres(t, 'nodes hold no more of a limit in all than it allows', async (t, database) => {
  const shared = database.shared!
  t.same(await drawLimits(shared, 'n1', 2, [{ ...asked, extra: 20 }]), [{ name: 'a', held: 30, others: 0 }])
  t.same(await drawLimits(shared, 'n2', 2, [{ ...asked, extra: 40 }]), [{ name: 'a', held: 25, others: 30 }])
  t.same(await drawLimits(shared, 'n1', 2, [{ ...asked, used: 30, need: 90 }]), [
    { name: 'a', held: 75, others: 25 },
  ])
  t.same(await drawLimits(shared, 'n2', 2, [{ ...asked, used: 25, need: 26 }]), [
    { name: 'a', held: 25, others: 75 },
  ])
  t.same(
    await drawLimits(shared, 'n1', 2, [
      { ...asked, need: 0 },
      { ...asked, name: 'b', need: 0 },
    ]),
    [
      { name: 'a', held: 0, others: 25 },
      { name: 'b', held: 0, others: 0 },
    ],
  )
  t.same(await drawLimits(shared, 'n2', 2, [{ ...asked, used: 25, need: 200 }]), [
    { name: 'a', held: 100, others: 0 },
  ])
})

onPostgres(t, 'what a node held ends with its time', async (t, database) => {
  const shared = database.shared!
  await drawLimits(shared, 'n1', 2, [{ ...asked, need: 60, keepMs: -1 }])
  t.same(await drawLimits(shared, 'n2', 2, [{ ...asked, need: 70 }]), [{ name: 'a', held: 70, others: 0 }])
  await drawLimits(shared, 'n1', 2, [{ ...asked, name: 'old', keepMs: -1 }])
  await deleteEndedUses(shared)
  t.same(
    (await shared.selectFrom('limit_uses').select('name').execute()).map(({ name }) => name),
    ['a'],
  )
})
