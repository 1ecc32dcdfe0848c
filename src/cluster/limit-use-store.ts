/**
 * SQL of the limits that nodes share (`shared-limits.ts`): one row per limited name, with what each node holds of it.
 *
 * A node's part counts for a while only, so that it is given back if the node dies. One statement draws for many names; rows are locked in
 * the order of their names. PostgreSQL only.
 */
import { sql } from 'kysely'
import type { Queries } from '../db/database.js'

interface LimitUseRow {
  name: string
  held: string
  until: number
}

declare module '../db/tables.js' {
  interface Tables {
    limit_uses: LimitUseRow
  }
}

/** A node's request for shares of a limit. Amounts are those of a whole window. */
export interface Asked {
  /** Digest. */
  readonly name: string
  readonly limit: number
  /** Counted at this node, which nobody can take back. */
  readonly used: number
  /** The least it wants to hold, with `used`. */
  readonly need: number
  /** More that it wants if much is left. */
  readonly extra: number
  /** How long its part counts, ms. */
  readonly keepMs: number
}

export interface Drawn {
  readonly name: string
  /** The most the node may count within the window, until it draws again. */
  readonly held: number
  /** Held by all others. */
  readonly others: number
}

const NOW = sql`(extract(epoch from clock_timestamp()) * 1000)::bigint`

/**
 * Sets the node's part of each name: `need` and some of `extra`, but with the others' parts never more than the limit.
 *
 * @param nodes how many share; what is left beyond `need` is not given to one of them alone
 */
export async function drawLimits(
  db: Queries,
  nodeId: string,
  nodes: number,
  asked: readonly Asked[],
): Promise<Drawn[]> {
  const others = (entries: string) => sql`
    jsonb_each(${sql.raw(entries)}) as e where e.key <> ${nodeId}::text and (e.value ->> 1)::bigint > ${NOW}`
  // The row to insert carries what was asked, for the case that the row exists.
  const own = (at: number) => sql`(excluded.held -> ${nodeId}::text ->> ${sql.lit(at)})::bigint`
  const { rows } = await sql<Drawn>`
    insert into limit_uses as u (name, held, until)
    select name,
      jsonb_build_object(${nodeId}::text,
        jsonb_build_array(least(need + extra, greatest("limit", used)), ${NOW} + keep, used, need, extra, "limit")),
      ${NOW} + keep
    from jsonb_to_recordset(${JSON.stringify(asked.map(toJson))}::jsonb)
      as w(name text, "limit" bigint, used bigint, need bigint, extra bigint, keep bigint)
    order by name
    on conflict (name) do update set (held, until) = (
      select o.parts || jsonb_build_object(${nodeId}::text, jsonb_build_array(
          greatest(${own(2)}, least(
            ${own(3)} + greatest(0, least(${own(4)}, (${own(5)} - o.held - ${own(3)}) / ${2 * nodes}::bigint)),
            ${own(5)} - o.held)),
          ${own(1)})),
        greatest(u.until, excluded.until)
      from (
        select coalesce(jsonb_object_agg(e.key, e.value), '{}'::jsonb) as parts,
          coalesce(sum((e.value ->> 0)::bigint), 0)::bigint as held
        from ${others('u.held')}
      ) as o)
    returning name, (u.held -> ${nodeId}::text ->> 0)::bigint as held,
      (select coalesce(sum((e.value ->> 0)::bigint), 0)::bigint from ${others('u.held')}) as others`.execute(
    db,
  )
  return rows
}

function toJson({ name, limit, used, need, extra, keepMs }: Asked) {
  return { name, limit, used, need, extra, keep: keepMs }
}

/** Deletes rows that count no more. */
export async function deleteEndedUses(db: Queries): Promise<void> {
  await db
    .deleteFrom('limit_uses')
    .where('until', '<', sql<number>`${NOW}`)
    .execute()
}
