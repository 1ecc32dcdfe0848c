/**
 * All data stored about a person in one workspace, as one JSON document: `GET /contacts/:id/export`.
 *
 * Written section by section while it is sent, so that memory use is bounded. Stops if the client disconnects.
 */
import type { Contact } from '../../audience/contacts/contact.js'
import { contactToApi } from '../../audience/contacts/contact-events.js'
import { isoTime } from '../../core/moments.js'
import type { Queries } from '../../db/database.js'
import { READ } from './export-store.js'
import { SECTIONS } from './personal-tables.js'

/** @param now ms since epoch UTC */
export async function* exportPerson(
  db: Queries,
  workspaceId: string,
  contact: Contact,
  {
    now,
    isSandbox,
    gone,
  }: { readonly now: number; readonly isSandbox: boolean; readonly gone?: AbortSignal },
): AsyncGenerator<string> {
  const exported = {
    contact,
    workspaceIds: [workspaceId],
    email: contact.email,
    contactIds: [contact.id],
  }
  const head = { exported_at: isoTime(now), contact: contactToApi(contact, isSandbox) }
  yield JSON.stringify(head).slice(0, -1)
  for (const section of SECTIONS) {
    let before = `,\n"${section}": [`
    for await (const rows of READ[section](db, exported)) {
      if (gone?.aborted) return
      if (rows.length === 0) continue
      yield before + rows.map(row => JSON.stringify(row)).join(',\n')
      before = ',\n'
    }
    yield before.endsWith('[') ? `${before}]` : ']'
  }
  yield '}\n'
}
