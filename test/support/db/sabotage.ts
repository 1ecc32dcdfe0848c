/** Breaks the database of a running appliance from outside, as a failing disk or a wrong hand would, and repairs it. */
import { join } from 'node:path'
import BetterSqlite from 'better-sqlite3'

export interface Breakable {
  readonly dataDir: string
}

/** From now on nothing can be inserted into the table. */
export function refuseInserts(appliance: Breakable, table: string): void {
  execute(
    appliance,
    `create trigger refuse_${table} before insert on ${table} begin select raise(abort, 'the disk is full'); end`,
  )
}

export function allowInserts(appliance: Breakable, table: string): void {
  execute(appliance, `drop trigger refuse_${table}`)
}

/** From now on there is no such table. */
export function hideTable(appliance: Breakable, table: string): void {
  execute(appliance, `alter table ${table} rename to hidden_${table}`)
}

export function showTable(appliance: Breakable, table: string): void {
  execute(appliance, `alter table hidden_${table} rename to ${table}`)
}

/** From now on nobody else can write, as while another process does. @returns what ends that */
export function lockDatabase({ dataDir }: Breakable): () => void {
  const database = new BetterSqlite(join(dataDir, 'postroad.db'))
  database.exec('begin immediate')
  return () => database.close()
}

function execute({ dataDir }: Breakable, sql: string): void {
  const database = new BetterSqlite(join(dataDir, 'postroad.db'))
  try {
    database.exec(sql)
  } finally {
    database.close()
  }
}
