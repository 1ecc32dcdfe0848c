/**
 * The schema that a database really has, compared with the one that its migrations make.
 *
 * Used by `migrate.ts`. Every table, index, view, trigger, rule and function has a digest of its definition; those that migrations make are
 * in `migrations/schema-digests.ts`. Reads catalogs only. Never throws but what the database throws.
 *
 * Left out because operators, servers and tools may change them: comments, formatting, the order of columns on PostgreSQL, storage
 * parameters, privileges, statistics, extensions, shadow tables of the search index, and Kysely's own tables.
 */
import { createHash } from 'node:crypto'
import { sql, type Kysely } from 'kysely'
import type { Dialect } from './database.js'
import { SCHEMA_DIGESTS } from './migrations/schema-digests.js'
import type { Tables } from './tables.js'

/** By kind and name, e.g. `table contacts`, `trigger contact_search_insert on contacts`. */
export type SchemaObjects = ReadonlyMap<string, SchemaObject>

interface SchemaObject {
  readonly kind: string
  /** The table it belongs to; its own name for a table, view or function. */
  readonly owner: string
  readonly digest: string
}

/** Digests by kind and name. */
export type SchemaDigests = ReadonlyMap<string, string>

export interface SchemaDifferences {
  readonly missing: readonly string[]
  readonly changed: readonly string[]
  /** Added objects that can change or block what the program writes. */
  readonly harmful: readonly string[]
  /** Other added objects. */
  readonly harmless: readonly string[]
}

/** @param applied names of migrations @returns undefined if the digests of one are unknown, as of one that only tests have */
export function expectedSchema(applied: readonly string[], dialect: Dialect): SchemaDigests | undefined {
  const expected = new Map<string, string>()
  for (const name of applied) {
    const lines = SCHEMA_DIGESTS[name]
    if (lines === undefined) return undefined
    for (const [, sqlite = '', postgres = '', object = ''] of lines.matchAll(/^(\S+) (\S+) (.+)$/gm)) {
      const digest = dialect === 'sqlite' ? sqlite : postgres
      if (digest === ABSENT) expected.delete(object)
      else expected.set(object, digest)
    }
  }
  return expected
}

/** In place of a digest: the object does not exist after the migration. */
export const ABSENT = '-'

export function compareSchema(expected: SchemaDigests, found: SchemaObjects): SchemaDifferences {
  const added = [...found].filter(([object]) => !expected.has(object))
  const isForeign = (table: string) => found.has(`table ${table}`) && !expected.has(`table ${table}`)
  const isHarmful = ({ kind, owner }: SchemaObject) =>
    kind === 'view' || (HARMFUL_ON_TABLE.has(kind) && !isForeign(owner))
  const named = (objects: typeof added) => objects.map(([object]) => object).sort()
  return {
    missing: [...expected.keys()].filter(object => !found.has(object)),
    changed: [...expected].flatMap(([object, digest]) =>
      (found.get(object)?.digest ?? digest) === digest ? [] : [object],
    ),
    harmful: named(added.filter(([, object]) => isHarmful(object))),
    harmless: named(added.filter(([, object]) => !isHarmful(object))),
  }
}

/** On all but added tables: on Postroad's, on Kysely's, and on those of the search index, which are not listed. A view may refer to a column that a migration changes, which then fails. */
const HARMFUL_ON_TABLE: ReadonlySet<string> = new Set(['trigger', 'rule', 'unique index'])

interface Definition {
  readonly kind: string
  readonly name: string
  readonly owner: string
  readonly text: string
}

export async function readSchema(db: Kysely<Tables>, dialect: Dialect): Promise<SchemaObjects> {
  const definitions = dialect === 'sqlite' ? await sqliteDefinitions(db) : await postgresDefinitions(db)
  return new Map(
    definitions.map(({ kind, name, owner, text }) => [
      kind === 'trigger' || kind === 'rule' ? `${kind} ${name} on ${owner}` : `${kind} ${name}`,
      { kind, owner, digest: digestOf(text) },
    ]),
  )
}

const DIGEST_DIGITS = 12

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, DIGEST_DIGITS)
}

async function sqliteDefinitions(db: Kysely<Tables>): Promise<Definition[]> {
  const { rows } = await sql<Definition>`
    select type as kind, name, tbl_name as owner, sql as text from sqlite_schema
    where sql is not null and name not like 'sqlite\\_%' escape '\\'
      and not (type = 'table' and name in ('schema_migrations', 'schema_migrations_lock'))
      and name not in (select name from pragma_table_list where schema = 'main' and type = 'shadow')`.execute(
    db,
  )
  return rows.map(row => ({
    ...row,
    kind: /^create\s+unique\b/i.test(row.text) ? 'unique index' : row.kind,
    text: withoutFormat(row.text),
  }))
}

const TOKENS = /--[^\n]*|\/\*[^]*?(?:\*\/|$)|'(?:[^']|'')*'|"(?:[^"]|"")*"|[\w$]+|[^\s\w]/g

/** SQLite stores statements as they were written; renaming adds quotes. */
function withoutFormat(statement: string): string {
  return [...statement.matchAll(TOKENS)]
    .map(([token]) => token)
    .filter(token => !token.startsWith('--') && !token.startsWith('/*'))
    .map(token => (token.startsWith("'") ? token : token.replaceAll('"', '').toLowerCase()))
    .join(' ')
}

/** In the schema that Postroad's tables are created in. An invalid index is one that is being built, or could not be. */
async function postgresDefinitions(db: Kysely<Tables>): Promise<Definition[]> {
  const { rows } = await sql<Definition>`
    with relations as (
      select oid, relname::text as name, relkind, relpersistence, relrowsecurity from pg_class
      where relnamespace = (select oid from pg_namespace where nspname = current_schema())
        and relkind in ('r', 'p', 'f', 'v', 'm') and relname not like 'schema\\_migrations%'
        and not exists (select from pg_depend where classid = 'pg_class'::regclass and objid = pg_class.oid and deptype = 'e')
    ), columns as (
      select attrelid, string_agg(
        concat_ws(' ', attname, format_type(atttypid, atttypmod), case when attnotnull then 'not null' end,
          case when attcollation <> typcollation then attcollation::regcollation::text end,
          attidentity, attgenerated, pg_get_expr(adbin, adrelid, true)),
        ', ' order by attname) as text
      from pg_attribute join pg_type on pg_type.oid = atttypid
      left join pg_attrdef on adrelid = attrelid and adnum = attnum
      where attrelid in (select oid from relations) and attnum > 0 and not attisdropped group by attrelid
    ), constraints as (
      select conrelid, string_agg(conname || ' ' || pg_get_constraintdef(oid, true), ', ' order by conname) as text
      from pg_constraint where conrelid in (select oid from relations) and contype not in ('n', 't') group by conrelid
    )
    select case when relkind in ('v', 'm') then 'view' else 'table' end as kind, name, name as owner,
      concat_ws(' ', relpersistence, case when relrowsecurity then 'rls' end, columns.text, constraints.text) as text
    from relations left join columns on attrelid = oid left join constraints on conrelid = oid
    union all
    select case when indisunique and indisvalid then 'unique index' else 'index' end, pg_class.relname, name,
      pg_get_indexdef(indexrelid, 0, true) || case when indisvalid then '' else ' invalid' end
    from pg_index join relations on indrelid = relations.oid join pg_class on pg_class.oid = indexrelid
    where not exists (select from pg_constraint where conindid = indexrelid and contype in ('p', 'u', 'x'))
    union all
    select 'trigger', tgname, name, concat_ws(' ', tgenabled, pg_get_triggerdef(pg_trigger.oid, true))
    from pg_trigger join relations on tgrelid = relations.oid where not tgisinternal
    union all
    select 'rule', rulename, name, pg_get_ruledef(pg_rewrite.oid, true)
    from pg_rewrite join relations on ev_class = relations.oid where rulename <> '_RETURN'
    union all
    select 'function', proname || '(' || pg_get_function_identity_arguments(oid) || ')', proname,
      concat_ws(' ', pg_get_function_result(oid), provolatile, proisstrict, proparallel,
        coalesce(pg_get_function_sqlbody(oid), prosrc))
    from pg_proc
    where pronamespace = (select oid from pg_namespace where nspname = current_schema())
      and not exists (select from pg_depend where classid = 'pg_proc'::regclass and objid = pg_proc.oid and deptype = 'e')`.execute(
    db,
  )
  return rows
}
