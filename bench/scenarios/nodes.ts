/**
 * One node on PostgreSQL, beside the same node on SQLite: mail through, and what each mail costs the database.
 *
 * Called by `main.ts`. PostgreSQL is a server of its own on the same machine, durable as installed, counted by pg_stat_statements.
 * Fails: throws where anything was not delivered.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { recipient, sendRequest } from '../fill/letters.js'
import { short } from '../numbers.js'
import { sendLoad } from '../peers/api-load.js'
import { openSink } from '../peers/sinks.js'
import { startPostgres, type PostgresServer } from '../server/postgres-server.js'
import { untilQueueIsEmpty } from '../server/queue-watch.js'
import { printTable } from '../table.js'
import { copyInstallation, install, serve, type Installation } from '../server/server-process.js'

export interface NodesOptions {
  readonly messages: number
  readonly profile: boolean
}

const OUTGOING = { connections: 500, connectionsPerDestination: 40 }
const DOMAINS = 20
/** Of the API: enough to keep the queue filled. */
const CLIENTS = 8
const POLL_MS = 50
const LIMIT_MS = 120_000
/** Characters of a statement that are shown. */
const STATEMENT = 150
const TOP_STATEMENTS = `select calls, rows, round(total_exec_time), left(regexp_replace(query, '\\s+', ' ', 'g'), ${STATEMENT})
  from pg_stat_statements s join pg_database d on d.oid = s.dbid
  where datname = current_database() order by total_exec_time desc limit 12`

interface Load {
  readonly messages: number
  readonly port: number
  readonly key: string
}

export async function measureNodes(original: Installation, options: NodesOptions): Promise<void> {
  const { messages, profile } = options
  const sink = await openSink()
  const outgoing = { ...OUTGOING, port: sink.port }

  const onFile = await copyInstallation(original, 'nodes-sqlite')
  const alone = await serve(onFile, outgoing)
  const began = performance.now()
  await accept({ messages, port: alone.port, key: onFile.key })
  await untilQueueIsEmpty(onFile.dataDir)
  const fileRate = (messages * 1_000) / (performance.now() - began)
  const fileCpu = alone.cpuSeconds()
  await alone.stop()

  const folder = join(original.dataDir, '..', 'nodes')
  mkdirSync(folder)
  const postgres = await startPostgres()
  try {
    const url = postgres.database('bench')
    const node = await install(folder, url)
    const server = await serve(node, outgoing, profile ? 'nodes' : undefined)
    // Connections, plans and the first claims are no part of steady state.
    await accept({ messages: 500, port: server.port, key: node.key })
    await untilDelivered(postgres, url, 500)
    await sleep(3_000)
    const before = { ...(await figures(postgres, url)), node: server.cpuSeconds(), at: performance.now() }
    await accept({ messages, port: server.port, key: node.key })
    await untilDelivered(postgres, url, 500 + messages)
    const seconds = (performance.now() - before.at) / 1_000
    // What consumers of the event log do with it belongs to the mail.
    await sleep(3_000)
    const after = { ...(await figures(postgres, url)), node: server.cpuSeconds() }
    const rate = messages / seconds
    const perMail = (what: 'cpu' | 'node' | 'transactions' | 'statements') =>
      (after[what] - before[what]) / messages
    printTable(
      'One node on PostgreSQL: messages of 10 KB, one recipient each, from the first request to the last one delivered',
      [
        [
          'database',
          'messages',
          'delivered/s',
          'of SQLite',
          'node CPU ms/mail',
          'database CPU ms',
          'transactions',
          'statements',
        ],
        ['SQLite', `${messages}`, short(fileRate), '100 %', short((fileCpu * 1_000) / messages), '', '', ''],
        [
          'PostgreSQL',
          `${messages}`,
          short(rate),
          `${Math.round((100 * rate) / fileRate)} %`,
          ...[
            perMail('node') * 1_000,
            perMail('cpu') * 1_000,
            perMail('transactions'),
            perMail('statements'),
          ].map(short),
        ],
      ],
      [
        `${CLIENTS} API clients; ${DOMAINS} destinations, delivered to ${sink.name} on loopback; PostgreSQL on the same cores, durable.`,
        'The last three columns are per mail, acceptance, delivery and event consumers included.',
      ],
    )
    const statements = postgres.psql(url, TOP_STATEMENTS).map(row => row.split('|'))
    printTable('The statements that took most of its time', [
      ['calls', 'rows', 'ms', 'statement'],
      ...statements.map(([calls = '', rows = '', ms = '', ...query]) => [calls, rows, ms, query.join('|')]),
    ])
    await server.stop()
  } finally {
    await postgres.stop()
    await sink.stop()
  }
}

async function accept({ messages, port, key }: Load): Promise<void> {
  await sendLoad({
    port,
    key,
    connections: CLIENTS,
    requests: messages,
    limitMs: LIMIT_MS,
    body: number => sendRequest(number, recipient(number, DOMAINS)),
  })
}

async function untilDelivered(postgres: PostgresServer, url: string, messages: number): Promise<void> {
  const limit = performance.now() + LIMIT_MS
  const isEmpty = () => postgres.psql(url, 'select not exists (select from queue)')[0] === 't'
  while (!isEmpty()) {
    if (performance.now() > limit) throw new Error('the queue does not get empty')
    await sleep(POLL_MS)
  }
  const [delivered] = postgres.psql(url, "select count(*) from messages where status = 'delivered'")
  if (Number(delivered) !== messages) throw new Error(`${delivered} of ${messages} messages were delivered`)
}

interface Figures {
  readonly cpu: number
  readonly transactions: number
  readonly statements: number
}

async function figures(postgres: PostgresServer, url: string): Promise<Figures> {
  const [row = ''] = postgres.psql(
    url,
    `select xact_commit, (select sum(calls) from pg_stat_statements s where s.dbid = d.datid) from pg_stat_database d where datname = current_database()`,
  )
  const [transactions, statements] = row.split('|').map(Number)
  return { cpu: postgres.cpuSeconds(), transactions: transactions ?? 0, statements: statements ?? 0 }
}
