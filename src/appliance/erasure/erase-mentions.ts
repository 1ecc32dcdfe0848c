/**
 * Erases a person from rows that mention it in text: logs, copies of events, inbound mail, and fields of mail to others.
 *
 * Used by `erase.ts`. Tables are searched on the slow reader, range by range; writes are split into pieces.
 */
import type { Database, Tx } from '../../db/database.js'
import { normalizedAddress } from '../../mail/address.js'
import { messagesAmong, type Subject } from './erasure-store.js'
import {
  eraseActivity,
  eraseDeliveries,
  eraseEvent,
  eraseInbound,
  eraseRejection,
  eraseSetAside,
  importsOf,
  keyAtDistance,
  mentionsBetween,
  MENTIONS,
  rejectionsOf,
  rewriteAnswer,
  rewriteBatchErrors,
  rewriteEvent,
  type Mention,
  type MentionTable,
} from './mention-store.js'
import { formsOf, mentionOf, PLACEHOLDER, withoutAddress } from './person-words.js'
import { ROWS_AT_ONCE, type Pieces } from './pieces.js'
import {
  CONTENTS_IN_USE,
  mergeCounter,
  namedCounters,
  REWRITTEN,
  rewriteRow,
  searched,
} from './rewrite-store.js'

/** Rows that one statement searches for mentions; other readers share the reading threads. */
const ROWS_SEARCHED = 5_000

/** Inbound mail belongs to no workspace; it is the person's if it is about one of their messages. */
export async function eraseInboundMails(
  database: Database,
  pieces: Pieces,
  subject: Subject,
  isEverywhere: boolean,
): Promise<number> {
  let count = 0
  for await (const page of mentions(database, MENTIONS.inbound, subject)) {
    const idsOf = ({ text }: Mention) =>
      text.match(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g)?.slice(0, ROWS_AT_ONCE) ?? []
    const meant: Mention[] = []
    for (const mention of page)
      if (isEverywhere || (await messagesAmong(database.slowReader, subject, idsOf(mention))))
        meant.push(mention)
    await pieces.run(meant, async (tx, some) => {
      for (const { key, part } of some) await eraseInbound(tx.db, Number(key), String(part))
    })
    count += meant.length
  }
  return count
}

/** Deletes or rewrites rows of logs that mention the person. */
export async function eraseMentions(
  database: Database,
  pieces: Pieces,
  subject: Subject,
): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  const walk = async (table: MentionTable, erase: (db: Tx['db'], mention: Mention) => Promise<void>) => {
    counts[table.name] ??= 0
    for await (const page of mentions(database, table, subject)) {
      await pieces.run(page, async (tx, some) => {
        for (const mention of some) await erase(tx.db, mention)
      })
      counts[table.name] = (counts[table.name] ?? 0) + page.length
    }
  }
  await walk(MENTIONS.events, (db, { key, text }) => {
    const rewritten = withoutPerson(text, subject)
    return rewritten === undefined ? eraseEvent(db, Number(key)) : rewriteEvent(db, Number(key), rewritten)
  })
  await walk(MENTIONS.deliveries, (db, { key, part }) => eraseDeliveries(db, String(key), Number(part)))
  await walk(MENTIONS.setAside, async (db, { key, part }) => {
    const { workspaceId } = JSON.parse(String(part)) as { readonly workspaceId?: string }
    if (subject.workspaceIds.includes(workspaceId ?? '')) await eraseSetAside(db, Number(key))
  })
  await walk(MENTIONS.activity, (db, { key }) => eraseActivity(db, Number(key)))
  counts['import_rejections'] = 0
  for (const contactImport of await importsOf(database.slowReader, subject.workspaceIds))
    await walk(rejectionsOf(contactImport), (db, { key }) => eraseRejection(db, contactImport, Number(key)))
  await walk(MENTIONS.batches, (db, { key, text }) =>
    rewriteBatchErrors(db, String(key), withoutAddress(text, subject.email)),
  )
  await walk(MENTIONS.answers, (db, { key, text }) =>
    rewriteAnswer(db, String(key), withoutAddress(text, subject.email)),
  )
  return counts
}

/**
 * Takes the person out of the fields of mail to others, and of other rows about others.
 *
 * @returns rows by table, and how many contents keep the address until their mail is done
 */
export async function rewriteOthers(
  database: Database,
  pieces: Pieces,
  subject: Subject,
): Promise<Record<string, number>> {
  const { email } = subject
  const forms = { ...subject, contactIds: [] }
  let rewritten = 0
  for (const table of REWRITTEN)
    for await (const page of mentions(database, searched(table), forms)) {
      await pieces.run(page, async (tx, some) => {
        for (const { key } of some) await rewriteRow(tx.db, table, key, email)
      })
      rewritten += page.length
    }
  const counters = await namedCounters(database.slowReader, subject.workspaceIds, mentionOf(formsOf(email)))
  await pieces.run(counters, async (tx, some) => {
    for (const key of some) await mergeCounter(tx.db, key)
  })
  let kept = 0
  for await (const page of mentions(database, CONTENTS_IN_USE, forms)) kept += page.length
  return { rows_of_others: rewritten + counters.length, contents_in_use: kept }
}

/** Processes rows that mention the person; each statement searches a bounded range of the table. */
async function* mentions(
  database: Database,
  table: MentionTable,
  subject: Subject,
): AsyncGenerator<Mention[]> {
  const words = [...formsOf(subject.email), ...subject.contactIds]
  const isNamed = mentionOf(words)
  for (let after: string | number | undefined; ;) {
    const end = await keyAtDistance(database.slowReader, table, after, ROWS_SEARCHED)
    for (let from = after; ;) {
      const page = await mentionsBetween(
        database.slowReader,
        table,
        { workspaceIds: subject.workspaceIds, words },
        { after: from, end },
        ROWS_AT_ONCE,
      )
      const named = page.filter(({ text }) => isNamed(text))
      if (named.length > 0) yield named
      if (page.length < ROWS_AT_ONCE) break
      from = page.at(-1)?.key
    }
    if (end === undefined) return
    after = end
  }
}

/** Fields of a mail event to the person besides the address. */
const PERSONAL = ['ip', 'userAgent', 'diagnosticCode', 'contactId', 'url']

/** The payload of a mail event without the person; undefined for other events, which are deleted. Mail to others stays theirs. */
function withoutPerson(text: string, { email }: Subject): string | undefined {
  const payload = JSON.parse(text) as Record<string, unknown>
  const { to } = payload
  if (typeof to !== 'string') return undefined
  if (normalizedAddress(to) !== email) return withoutAddress(text, email)
  const kept = Object.fromEntries(Object.entries(payload).filter(([name]) => !PERSONAL.includes(name)))
  return withoutAddress(JSON.stringify({ ...kept, to: PLACEHOLDER }), email)
}
