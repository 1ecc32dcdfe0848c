/**
 * The export of a person, written section by section while it is sent, so that memory use is bounded. It stops if the client disconnects.
 */
import { contactToApi } from '../../audience/contacts/contact-events.js'
import type { Contact } from '../../audience/contacts/contact.js'
import { isoTime } from '../../core/moments.js'
import type { Queries } from '../../db/database.js'
import { contentPieces } from './export-content-store.js'
import { EXPORT_READERS, readMessages, type Exported } from './export-store.js'
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
    if (section === 'messages') {
      yield* messagePieces(db, exported, gone)
      continue
    }
    let before = `,\n"${section}": [`
    for await (const rows of EXPORT_READERS[section](db, exported)) {
      if (gone?.aborted) return
      if (rows.length === 0) continue
      yield before + rows.map(row => JSON.stringify(row)).join(',\n')
      before = ',\n'
    }
    yield before.endsWith('[') ? `${before}]` : ']'
  }
  yield '}\n'
}

/** Message by message, since the contents of a page may be long. */
async function* messagePieces(
  db: Queries,
  exported: Exported,
  gone: AbortSignal | undefined,
): AsyncGenerator<string> {
  let before = ',\n"messages": ['
  for await (const messages of readMessages(db, exported))
    for (const { contentId, shown } of messages) {
      if (gone?.aborted) return
      yield before + JSON.stringify(shown).slice(0, -1)
      yield* contentPieces(db, contentId)
      yield '}'
      before = ',\n'
    }
  yield before.endsWith('[') ? `${before}]` : ']'
}
