/**
 * SQL of attribute places: which attributes of an audience have columns of their own in the rows of its contacts.
 *
 * The first sixteen names under which an audience ever has a text, number or boolean, in the order of their coming, and for good: a name
 * is given its place in the transaction that stores the first contact with it, so that whatever contact has a placed attribute has it there.
 * All other attributes, and arrays and objects always, are in `traits`, which takes a rule about three times as long to read. Called by the contact store, and by who compiles rules.
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

/** Names of attributes, and their places: 0 to 15. */
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

/** For contacts that are about to be stored, in the same transaction: gives new names their places while there are any. */
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
      // An array or an object has nothing to put into the columns.
      if (text === null || places.has(name) || places.size === PLACES) continue
      given.push({ audience, place: places.size, name })
      places.set(name, places.size)
    }
  }
  for (const piece of inPieces(given)) await insertPlaces(db, { rows: piece })
  return places
}

/** Columns that are written at a time: of so many places. */
const WIDTH = 4

/**
 * The columns of the places that are taken, and a few more: the text, folded; what of it is a number; what of it is a moment, ms
 * since epoch UTC. The others have nothing in any row of this audience.
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
 * What rules compare of the attributes.
 *
 * @param columns as `placeColumns` gives them @returns their values, and as JSON the attributes that have no place
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
    // Arrays and objects stand in `traits`, even under a name that has a place.
    others.push(attribute)
  }
  return { values, traits: others.length === 0 ? '{}' : JSON.stringify(traitsOf(others)) }
}
