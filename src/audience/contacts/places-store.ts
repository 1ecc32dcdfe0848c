/**
 * SQL of attribute places: which attributes of an audience have their own columns in the contact rows.
 *
 * The first sixteen attribute names that ever had a text, number or boolean value get a place, permanently. It is assigned in the
 * transaction that stores the first contact with the name, so that values of a placed attribute are always in its columns.
 * Other attributes, and all arrays and objects, are in `traits`, where a rule takes about three times as long to evaluate.
 */
import { inPieces, statement } from '../../db/statement.js'
import type { Queries } from '../../db/database.js'
import { traitsOf, type NamedTrait, type StoredForm } from './traits.js'

export const PLACES = 16

interface PlaceRow {
  audience: number
  place: number
  name: string
}

declare module '../../db/tables.js' {
  interface Tables {
    attribute_places: PlaceRow
  }
}

/** Places (0 to 15) by attribute name. */
export type Places = ReadonlyMap<string, number>

const selectPlaces = statement((db, { audience }: { audience: number }) =>
  db.selectFrom('attribute_places').select(['place', 'name']).where('audience', '=', audience),
)

const insertPlaces = statement((db, { rows }: { rows: readonly PlaceRow[] }) =>
  db.insertInto('attribute_places').values(rows),
)

export async function findPlaces(db: Queries, audience: number): Promise<Places> {
  const { rows } = await selectPlaces(db, { audience })
  return new Map((rows as PlaceRow[]).map(({ name, place }) => [name, place]))
}

/** Assigns free places to new names, in the transaction that stores the contacts. */
export async function givePlaces(
  db: Queries,
  audience: number,
  contacts: readonly Pick<StoredForm, 'traits'>[],
): Promise<Places> {
  const places = new Map(await findPlaces(db, audience))
  const given: PlaceRow[] = []
  for (const { traits } of contacts) {
    if (places.size === PLACES) break
    for (const [name, { text }] of traits) {
      // Arrays and objects are not stored in columns.
      if (text === null || places.has(name) || places.size === PLACES) continue
      given.push({ audience, place: places.size, name })
      places.set(name, places.size)
    }
  }
  for (const piece of inPieces(given)) await insertPlaces(db, { rows: piece })
  return places
}

/** Column lists cover a multiple of this many places, so that few statements are prepared. */
const WIDTH = 4

/**
 * Columns of the assigned places, rounded up to a multiple of `WIDTH`: folded text, number, and moment in ms since epoch UTC. The remaining columns are
 * null in every row of this audience.
 */
export function placeColumns(places: Places): readonly string[] {
  return PLACE_COLUMNS.slice(0, 3 * WIDTH * Math.ceil(places.size / WIDTH))
}

export const PLACE_COLUMNS: readonly string[] = Array.from({ length: PLACES }, (_, place) => [
  `text_${place}`,
  `number_${place}`,
  `moment_${place}`,
]).flat()

/**
 * Splits attributes into place columns and `traits`.
 *
 * @param columns of `placeColumns` @returns the column values, and JSON of the other attributes
 */
export function placed(
  attributes: readonly NamedTrait[],
  places: Places,
  columns: readonly string[],
): { readonly values: readonly (string | number | null)[]; readonly traits: string } {
  const values = new Array<string | number | null>(columns.length).fill(null)
  const others: NamedTrait[] = []
  for (const attribute of attributes) {
    const [name, { text, number, moment }] = attribute
    const place = places.get(name)
    if (place !== undefined) {
      values[3 * place] = text
      values[3 * place + 1] = number
      values[3 * place + 2] = moment
      if (text !== null) continue
    }
    // Arrays and objects go to `traits` even if their name has a place.
    others.push(attribute)
  }
  return { values, traits: others.length === 0 ? '{}' : JSON.stringify(traitsOf(others)) }
}
