/** Why queued imports wait. */
import t from 'tap'
import { findImportWait } from '../../../src/audience/transfer/import-wait-store.js'
import { findImportBySeq } from '../../../src/audience/transfer/import-store.js'
import { eachDatabase } from '../../support/db/database.js'
import { partsOf, receive } from '../../support/imports.js'

eachDatabase(
  t,
  'an import that is not the next one says which go first, or that the disk is full',
  async (t, database) => {
    const parts = partsOf(database)
    const file = 'email\nann@x.test\n'
    const seqs: number[] = []
    for (const workspace of ['w1', 'w1', 'w2', 'w3', 'w4', 'w5'])
      seqs.push(await receive(parts, file, {}, workspace))
    const waitOf = async (at: number) => {
      const one = await findImportBySeq(database.reader, seqs[at] ?? 0)
      return one && findImportWait(database.reader, one, undefined)
    }
    t.equal(await waitOf(0), undefined)
    t.match(await waitOf(1), { reason: 'earlier_import', detail: /of this workspace/ })
    t.equal(await waitOf(4), undefined, 'four run side by side')
    t.match(await waitOf(5), { reason: 'earlier_import', detail: /other workspaces/ })
    const fault = { code: 'disk_low', isFatal: false, reason: 'x' } as const
    const first = await findImportBySeq(database.reader, seqs[0] ?? 0)
    t.match(first && (await findImportWait(database.reader, first, fault)), { reason: 'disk' })
    const done = first && { ...first, status: 'completed' as const }
    t.equal(done && (await findImportWait(database.reader, done, fault)), undefined)
  },
)
