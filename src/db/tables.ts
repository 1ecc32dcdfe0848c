/**
 * The type of the whole database, put together from below: each store declares its own rows beside its SQL with
 *
 *   declare module './tables.js' { interface Tables { domains: DomainRow } }
 *
 * so that this layer knows no resource, and a table's columns are read where they are used.
 *
 * Columns are neutral between SQLite and PostgreSQL: moments are integers (ms since epoch UTC), truth values 0 or 1,
 * structured values JSON text, identifiers UUID text.
 */

// Filled by the stores.
// eslint-disable-next-line @typescript-eslint/no-empty-object-type
export interface Tables {}

/** A boolean as both databases store it. */
export type Flag = 0 | 1

export function flag(isTrue: boolean): Flag {
  return isTrue ? 1 : 0
}
