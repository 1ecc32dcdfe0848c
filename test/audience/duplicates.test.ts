/** Contacts that are in more than one list, on both databases. */
import t from 'tap'
import type { Acting, AudienceParts } from '../../src/audience/audience-parts.js'
import { listDuplicates } from '../../src/audience/contacts/contact-page-store.js'
import { createContact, removeContacts } from '../../src/audience/contacts/contacts.js'
import { findList, insertList, markListDeleted } from '../../src/audience/lists/list-store.js'
import { changeMembers } from '../../src/audience/lists/lists.js'
import { uuidv7 } from '../../src/core/ids.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { eachDatabase } from '../support/db/database.js'
import { NOW } from '../support/mailroom.js'

const ACTING: Acting = { workspaceId: 'w1', isSandbox: false, source: 'api' }
const PAGE = { limit: 10, offset: 0 }

eachDatabase(
  t,
  'who is in more than one list is listed once, newest first; deleted lists and contacts do not count',
  async (t, database) => {
    let made = 0
    const parts: AudienceParts = {
      ...{ database, clock: new FakeClock(), onEvents: () => {} },
      newId: () => uuidv7(NOW, Buffer.from(String(++made).padStart(10, '0'))),
    }
    const list = async (name: string, members: readonly string[]) => {
      const id = parts.newId()
      await database.write(tx =>
        insertList(tx.db, {
          ...{ id, workspaceId: 'w1', name, description: null, type: 'static', conditions: null },
          ...{ isPublic: false, doubleOptIn: false, createdAt: NOW, updatedAt: NOW },
        }),
      )
      await changeMembers(parts, ACTING, id, members, 'added')
      return (await findList(database.reader, 'w1', id))!.seq
    }
    const contacts = await database.write(async tx => {
      const all = []
      for (const name of ['ann', 'bob', 'cid', 'dan'])
        all.push(await createContact(parts, tx, ACTING, { email: `${name}@x.example` }))
      return all
    })
    const [ann, bob, cid, dan] = contacts.map(({ id }) => id) as [string, string, string, string]
    const news = await list('news', [ann, bob, cid, dan])
    await list('shop', [ann, bob])
    const club = await list('club', [ann, dan])
    const gone = await list('gone', [cid, dan])
    await database.write(async tx => {
      await markListDeleted(tx.db, gone, NOW)
      await removeContacts(
        parts,
        tx,
        ACTING,
        contacts.filter(({ id }) => id === bob),
      )
    })
    const duplicates = async (inList?: number, page = PAGE) => {
      const { items, total } = await listDuplicates(database.reader, 'w1', inList, page)
      return { total, emails: items.map(({ email }) => email) }
    }
    t.same(await duplicates(), { total: 2, emails: ['dan@x.example', 'ann@x.example'] })
    t.same(await duplicates(undefined, { limit: 1, offset: 1 }), { total: 2, emails: ['ann@x.example'] })
    t.same(await duplicates(news), { total: 2, emails: ['dan@x.example', 'ann@x.example'] })
    t.same(await duplicates(club), await duplicates(news), 'in that list, and in any other')
  },
)
