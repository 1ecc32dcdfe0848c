/** What works that share a transaction on PostgreSQL may rely on. */
import t from 'tap'
import { insertWorkspace, NEW_WORKSPACE } from '../../src/accounts/workspace-store.js'
import type { Tx } from '../../src/db/database.js'
import { postgresUrl, realPostgres } from '../support/db/real-postgres.js'
import { NOW } from '../support/mailroom.js'

const workspace = (id: string) => ({ ...NEW_WORKSPACE, id, name: `Workspace ${id}`, createdAt: NOW })

const rename =
  (id: string, name: string) =>
  async ({ db }: Tx): Promise<number> => {
    const changed = await db.updateTable('workspaces').set({ name }).where('id', '=', id).executeTakeFirst()
    return Number(changed.numUpdatedRows)
  }

function gate(): [opened: Promise<void>, open: () => void] {
  let open = (): void => {}
  const opened = new Promise<void>(resolve => (open = resolve))
  return [opened, open]
}

t.test('a change meets what was committed before it was called, here or at another node', async t => {
  const url = await postgresUrl(t)
  const [here, there] = [await realPostgres(t, { url }), await realPostgres(t, { url })]
  const [begun, begin] = gate()
  const [maySee, goOn] = gate()
  const earlier = [1, 2].map(() =>
    here.write(async ({ db }) => {
      await db.selectFrom('workspaces').select('id').execute()
      begin()
      await maySee
    }),
  )
  await begun
  await there.write(tx => insertWorkspace(tx.db, workspace('w1')))
  const later = here.write(rename('w1', 'Renamed'))
  goOn()
  await Promise.all(earlier)
  t.equal(await later, 1)
})

t.test('works that wait at the same time share a transaction', async t => {
  const works: number[] = []
  const database = await realPostgres(t, { onCommitted: (_, count) => works.push(count) })
  await Promise.all(['a', 'b', 'c'].map(id => database.write(tx => insertWorkspace(tx.db, workspace(id)))))
  t.same(works, [3])
})
