/**
 * Rewrites the comparison values of attributes for every contact: text such as `19.90` as a number, arrays item by item, nested
 * attributes by their paths.
 *
 * A copy of the rules of `audience/contacts/traits.ts` as they are at this version. Places stay as they are; a nested attribute gets none.
 */
import { sql, type Kysely } from 'kysely'
import { fold } from '../../core/fold.js'
import { readMoment } from '../../core/read-moment.js'
import type { Dialect } from '../database.js'

const PER_STEP = 500
const NUMBER = /^\s*[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d{1,3})?\s*$/i
const UNNAMEABLE = /[\p{Cc}\p{Cs}]/u
const MOST_NUMBER = 64
const MOST_PATH = 120
const MOST_NESTED = 1_000

type Value = string | number | null | readonly (string | number)[]

interface OldContact {
  readonly seq: number
  readonly audience: number
  readonly attributes: string
}

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const { rows: placed } = await sql<{ audience: number; place: number; name: string }>`
    select audience, place, name from attribute_places`.execute(db)
  const places = new Map(placed.map(({ audience, place, name }) => [`${audience} ${name}`, place]))
  let last = -1
  for (;;) {
    const { rows } = await sql<OldContact>`
      select seq, audience, attributes from contacts where seq > ${last} and attributes <> '{}'
      order by seq limit ${PER_STEP}`.execute(db)
    for (const contact of rows) {
      const { columns, traits } = comparable(contact, places)
      const json = JSON.stringify(traits)
      const settings = [
        sql`traits = ${dialect === 'sqlite' ? sql`jsonb(${json})` : sql`cast(${json} as jsonb)`}`,
        ...Object.entries(columns).map(([column, value]) => sql`${sql.ref(column)} = ${value}`),
      ]
      await sql`update contacts set ${sql.join(settings)} where seq = ${contact.seq}`.execute(db)
      last = contact.seq
    }
    if (rows.length < PER_STEP) return
  }
}

function comparable(
  { audience, attributes }: OldContact,
  places: ReadonlyMap<string, number>,
): { columns: Record<string, Value>; traits: Record<string, Value> } {
  const columns: Record<string, Value> = {}
  const traits: Record<string, Value> = {}
  for (const [name, value] of namedValues(JSON.parse(attributes) as Record<string, unknown>)) {
    const text = textOf(value)
    const number = typeof value === 'number' ? value : typeof value === 'string' ? numberOf(value) : null
    const moment = typeof value === 'string' && /^\d{4}-\d\d-\d\d/.test(value) ? readMoment(value) : undefined
    const place = text === null ? undefined : places.get(`${audience} ${name}`)
    if (place !== undefined) {
      columns[`text_${place}`] = text
      columns[`number_${place}`] = number
      columns[`moment_${place}`] = moment ?? null
      continue
    }
    const trait = name.replace(/[^A-Za-z0-9_]/gu, letter => `~${letter.codePointAt(0)?.toString(16) ?? ''}~`)
    traits[trait] = text
    if (number !== null) traits[`${trait}~n`] = number
    if (moment !== undefined) traits[`${trait}~d`] = moment
    const items = Array.isArray(value) ? value.flatMap(item => textOf(item) ?? []) : []
    if (items.length > 0) traits[`${trait}~l`] = items
    const numbers = items.flatMap(item => numberOf(item) ?? [])
    if (numbers.length > 0) traits[`${trait}~m`] = numbers
  }
  return { columns, traits }
}

/** Those at the top, then nested ones by their paths, the shallow ones first. */
function namedValues(attributes: Record<string, unknown>): Map<string, unknown> {
  const top = Object.entries(attributes)
  const found = new Map(top.filter(([, value]) => !isNothing(value)))
  const most = found.size + MOST_NESTED
  let level = top
  while (level.length > 0 && found.size < most) {
    const next: [string, unknown][] = []
    for (const [path, value] of level)
      for (const [key, inner] of innerValues(value)) {
        const place = `${path}.${key}`
        if (place.length > MOST_PATH || UNNAMEABLE.test(key)) continue
        if (isNothing(inner) || next.length >= MOST_NESTED) continue
        next.push([place, inner])
        if (!Object.hasOwn(attributes, place) && !found.has(place) && found.size < most)
          found.set(place, inner)
      }
    level = next
  }
  return found
}

function innerValues(value: unknown): [string, unknown][] {
  if (typeof value !== 'object' || value === null) return []
  if (!Array.isArray(value)) return Object.entries(value)
  const collected = new Map<string, unknown[]>()
  for (const item of value as unknown[])
    if (typeof item === 'object' && item !== null && !Array.isArray(item))
      for (const [key, inner] of Object.entries(item)) {
        const all = collected.get(key) ?? []
        collected.set(key, all)
        for (const one of (Array.isArray(inner) ? inner : [inner]) as unknown[]) all.push(one)
      }
  return [...collected]
}

function isNothing(value: unknown): boolean {
  return value === null || (typeof value === 'object' && Object.keys(value).length === 0)
}

function textOf(value: unknown): string | null {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (typeof value !== 'string') return null
  return Buffer.from(fold(value).replaceAll('\0', ''), 'utf8').toString('utf8')
}

function numberOf(text: string): number | null {
  if (text.length > MOST_NUMBER || !NUMBER.test(text)) return null
  const number = Number(text)
  return Number.isFinite(number) ? number : null
}
