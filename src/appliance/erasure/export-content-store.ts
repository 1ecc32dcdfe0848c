/**
 * SQL and JSON of the contents of exported messages: text, HTML, headers, data, attachments and the source of relayed mail.
 *
 * Used by `export-person.ts`. Memory holds one content without its octets, and one part (256 KB) of those. Attachments and source are base64.
 * Fails: as the database does, or if retention deletes a content while it is written; the export breaks off then.
 */
import type { Merging } from '../../content/rendering/merging.js'
import type { Queries } from '../../db/database.js'
import type { AttachmentFacts } from '../../messages/content-store.js'

/** The fields of a message's content, as the rest of a JSON object: `,"reply_to":null,"html":...`. */
export async function* contentPieces(db: Queries, contentId: string): AsyncGenerator<string> {
  const row = await db
    .selectFrom('message_contents')
    .select(['reply_to', 'tags', 'headers', 'attachments', 'merging', 'html', 'text', 'raw', 'raw_size'])
    .select('pruned_at')
    .where('id', '=', contentId)
    .executeTakeFirst()
  if (!row) return
  const { html, text, raw } = row
  const merging = parsed(row.merging) as Merging | null
  const fields = {
    reply_to: parsed(row.reply_to),
    tags: parsed(row.tags) ?? [],
    headers: parsed(row.headers) ?? [],
    template_data: merging?.data ?? null,
    html,
    text,
  }
  yield `,${JSON.stringify(fields).slice(1, -1)}`
  const parts = new Parts(db, contentId)
  const size = row.raw_size ?? raw?.length ?? 0
  yield ',"source":'
  const isPruned = row.pruned_at !== null
  if (raw === null || isPruned) yield 'null'
  else yield* quotedBase64(joined(raw, parts.take(size - raw.length)))
  yield ',"attachments":['
  let before = ''
  for (const { size, ...facts } of (parsed(row.attachments) as readonly AttachmentFacts[] | null) ?? []) {
    yield `${before}${JSON.stringify(attachmentFields(facts, size)).slice(0, -1)},"content":`
    if (isPruned) yield 'null'
    else yield* quotedBase64(parts.take(size))
    yield '}'
    before = ','
  }
  yield ']'
}

function parsed(json: string | null): unknown {
  return json === null ? null : JSON.parse(json)
}

function attachmentFields({ filename, contentType, contentId }: Omit<AttachmentFacts, 'size'>, size: number) {
  return { filename, content_type: contentType, content_id: contentId ?? null, size }
}

async function* joined(first: Uint8Array, others: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield first
  yield* others
}

/** The octets of `message_parts`, read part by part. */
class Parts {
  private readonly db: Queries
  private readonly contentId: string
  private part = 0
  private left: Uint8Array = new Uint8Array()

  constructor(db: Queries, contentId: string) {
    this.db = db
    this.contentId = contentId
  }

  /** The next octets. */
  async *take(count: number): AsyncGenerator<Uint8Array> {
    for (let wanted = count; wanted > 0;) {
      if (this.left.length === 0) this.left = await this.next()
      const taken = this.left.subarray(0, wanted)
      this.left = this.left.subarray(taken.length)
      wanted -= taken.length
      yield taken
    }
  }

  private async next(): Promise<Uint8Array> {
    this.part += 1
    const row = await this.db
      .selectFrom('message_parts')
      .select('octets')
      .where('content_id', '=', this.contentId)
      .where('part', '=', this.part)
      .executeTakeFirst()
    if (!row || row.octets.length === 0)
      throw new Error(`part ${this.part} of content ${this.contentId} is missing`)
    return row.octets
  }
}

/** As one JSON string. Three octets are four characters, so the pieces join without padding. */
async function* quotedBase64(octets: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  yield '"'
  let rest = Buffer.alloc(0)
  for await (const some of octets) {
    const all = Buffer.concat([rest, some])
    const whole = all.length - (all.length % 3)
    yield all.toString('base64', 0, whole)
    rest = all.subarray(whole)
  }
  yield `${rest.toString('base64')}"`
}
