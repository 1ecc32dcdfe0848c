/** Breaks the database of a running appliance from outside, as a failing disk or a wrong hand would, and repairs it. */
import { join } from 'node:path'
import BetterSqlite from 'better-sqlite3'
import { POSTGRES_SERVER } from './real-postgres.js'

export interface Breakable {
  readonly dataDir: string
  readonly sql: (statement: string) => unknown
}

/** From now on nothing can be inserted into the table. @param when a condition on the row, `new`; any row if empty */
export function refuseInserts(appliance: Breakable, table: string, when = ''): void {
  const trigger = `create trigger refuse_${table} before insert on ${table}`
  const condition = when === '' ? '' : `when (${when})`
  if (POSTGRES_SERVER === undefined)
    appliance.sql(`${trigger} ${condition} begin select raise(abort, 'the disk is full'); end`)
  else
    appliance.sql(`create function refuse_${table}() returns trigger language plpgsql as $$ begin
      if ${when === '' ? 'true' : when} then raise exception 'the disk is full'; end if; return new; end $$;
      ${trigger} for each row execute function refuse_${table}()`)
}

export function allowInserts(appliance: Breakable, table: string): void {
  appliance.sql(`drop trigger refuse_${table}${POSTGRES_SERVER === undefined ? '' : ` on ${table}`}`)
}

/** From now on there is no such table. */
export function hideTable(appliance: Breakable, table: string): void {
  appliance.sql(`alter table ${table} rename to hidden_${table}`)
}

export function showTable(appliance: Breakable, table: string): void {
  appliance.sql(`alter table hidden_${table} rename to ${table}`)
}

/** From now on nobody else can write, as while another process does. @returns what ends that */
export function lockDatabase({ dataDir }: Breakable): () => void {
  const database = new BetterSqlite(join(dataDir, 'postroad.db'))
  database.exec('begin immediate')
  return () => database.close()
}
