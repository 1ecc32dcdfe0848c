/**
 * Nodes on PostgreSQL: what each mail costs the database, one node beside the same node on SQLite, what an idle node asks, and several nodes.
 *
 * Called by `main.ts`. PostgreSQL is a server of its own on the same machine, as durable as by default, counted by pg_stat_statements.
 * Several nodes are compared with a share of a CPU each, since they have one machine. Fails: throws where anything was not delivered.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { recipient, sendRequest } from '../fill/letters.js'
import { short } from '../numbers.js'
import { sendLoad } from '../peers/api-load.js'
import { openSink, type Sink } from '../peers/sinks.js'
import { limitCpu } from '../server/cpu-share.js'
import { startPostgres, type PostgresServer } from '../server/postgres-server.js'
import { untilQueueIsEmpty } from '../server/queue-watch.js'
import {
  copyInstallation,
  install,
  serve,
  type Installation,
  type Outgoing,
  type ServerProcess,
} from '../server/server-process.js'
import { printFacts, printTable } from '../table.js'

export interface NodesOptions {
  readonly messages: number
  /** Messages that wait for a later time, in one of the rows. */
  readonly waiting: number
  readonly profile: boolean
}

const DOMAINS = 20
/** Of the API: enough to keep the queue filled. */
const CLIENTS = 64
const WARM_UP = 1_000
/** For consumers of the event log, whose work belongs to the mail. */
const SETTLE_MS = 3_000
const LIMIT_MS = 300_000
/** An idle node has jobs of each minute. */
const IDLE_SECONDS = 60
/** CPUs of each node where several are compared. */
const SHARE = 0.25
const MESSAGES_PER_NODE = 750
/** Characters of a statement that are shown. */
const STATEMENT = 120
/** Half an hour's mail at 170 a second. */
const DELIVERED_MEANWHILE = 300_000
const TOP_STATEMENTS = `select calls, rows, round(total_exec_time), left(regexp_replace(query, '\\s+', ' ', 'g'), ${STATEMENT})
  from pg_stat_statements s join pg_database d on d.oid = s.dbid
  where datname = current_database() order by total_exec_time desc limit 12`

const MOST_FREQUENT_STATEMENTS = TOP_STATEMENTS.replace('total_exec_time desc', 'calls desc')

interface Bench {
  readonly sink: Sink
  readonly outgoing: Outgoing
  readonly postgres: PostgresServer
  readonly folder: string
}

export async function measureNodes(original: Installation, options: NodesOptions): Promise<void> {
  const sink = await openSink()
  const outgoing = { connections: 500, connectionsPerDestination: 40, port: sink.port }
  const fileRow = await measureSqlite(original, outgoing, options.messages)
  const folder = join(original.dataDir, '..', 'nodes')
  mkdirSync(folder)
  const postgres = await startPostgres()
  const bench: Bench = { sink, outgoing, postgres, folder }
  try {
    await measureCost(bench, options, fileRow)
    await measureSeveral(bench)
  } finally {
    await postgres.stop()
    await sink.stop()
  }
}

interface Row {
  readonly name: string
  readonly messages: number
  readonly perSecond: number
  /** Of the server, s. */
  readonly cpuSeconds: number
  readonly database?: Figures
}

async function measureSqlite(original: Installation, outgoing: Outgoing, messages: number): Promise<Row> {
  const installation = await copyInstallation(original, 'nodes-sqlite')
  const server = await serve(installation, outgoing)
  const { key, dataDir } = installation
  await send([server], key, WARM_UP)
  await untilQueueIsEmpty(dataDir)
  await sleep(SETTLE_MS)
  const [cpuBefore, began] = [server.cpuSeconds(), performance.now()]
  await send([server], key, messages)
  await untilQueueIsEmpty(dataDir)
  const seconds = (performance.now() - began) / 1_000
  await sleep(SETTLE_MS)
  const cpuSeconds = server.cpuSeconds() - cpuBefore
  await server.stop()
  return { name: 'SQLite', messages, perSecond: messages / seconds, cpuSeconds }
}

async function measureCost(bench: Bench, options: NodesOptions, fileRow: Row): Promise<void> {
  const { postgres, folder, outgoing, sink } = bench
  const { messages, waiting, profile } = options
  const url = postgres.database('cost')
  const node = await install(folder, url)
  const server = await serve(node, outgoing, profile ? 'nodes' : undefined)
  // Connections, plans and the first claims are no part of steady state.
  await send([server], node.key, WARM_UP)
  await untilDelivered(postgres, url)
  await measureIdle(bench, url, server)
  const measure = (name: string) => measureRow(bench, { name, url, node, server, messages })
  const rows = [fileRow, await measure('PostgreSQL')]
  const statements = topStatements(postgres, url)
  const held = postgres.holdSnapshot(url)
  await sleep(SETTLE_MS)
  rows.push(await measure('with a snapshot held'))
  postgres.psql(url, deliveredMessages(node.workspaceId, DELIVERED_MEANWHILE))
  postgres.psql(url, 'select pg_stat_statements_reset()')
  await sleep(SETTLE_MS)
  rows.push(await measure(`and ${DELIVERED_MEANWHILE} delivered since`))
  const statementsBehindSnapshot = topStatements(postgres, url)
  held()
  postgres.psql(url, waitingMessages(node.workspaceId, waiting))
  // Work left over from filling is not part of the cost of a mail.
  for (const rest of ['vacuum analyze', 'checkpoint', 'select pg_stat_statements_reset()'])
    postgres.psql(url, rest)
  await sleep(SETTLE_MS)
  rows.push(await measure(`with ${waiting} waiting`))
  const statementsBesideWaiting = topStatements(postgres, url)
  await server.stop()
  printTable(
    'One node on PostgreSQL: messages of 10 KB, one recipient each, from the first request to the last one delivered',
    [
      [
        'database',
        'messages',
        'delivered/s',
        'of SQLite',
        'node CPU',
        'database CPU',
        'transactions',
        'statements',
      ],
      ...rows.map(row => [
        row.name,
        `${row.messages}`,
        short(row.perSecond),
        `${Math.round((100 * row.perSecond) / fileRow.perSecond)} %`,
        short((row.cpuSeconds * 1_000) / row.messages),
        ...(row.database
          ? [
              short((row.database.cpuSeconds * 1_000) / row.messages),
              (row.database.transactions / row.messages).toFixed(3),
              (row.database.statements / row.messages).toFixed(2),
            ]
          : ['', '', '']),
      ]),
    ],
    [
      `${CLIENTS} API clients; ${DOMAINS} destinations, delivered to ${sink.name} on loopback; everything on the same cores.`,
      'CPU in ms per mail; transactions and statements per mail, those of acceptance, delivery and event consumers.',
    ],
  )
  printStatements('The statements that took most of its time', statements)
  printStatements(
    `The same behind the snapshot, ${DELIVERED_MEANWHILE} delivered since`,
    statementsBehindSnapshot,
  )
  printStatements(`The same with ${waiting} waiting`, statementsBesideWaiting)
}

async function measureIdle({ postgres }: Bench, url: string, server: ServerProcess): Promise<void> {
  await sleep(SETTLE_MS)
  postgres.psql(url, 'select pg_stat_statements_reset()')
  const before = figures(postgres, url)
  const cpuBefore = server.cpuSeconds()
  await sleep(1_000 * IDLE_SECONDS)
  const after = figures(postgres, url)
  const share = (seconds: number) => `${((100 * seconds) / IDLE_SECONDS).toFixed(1)} % of one core`
  printFacts('The node while nothing is to do', [
    ['statements', `${short((after.statements - before.statements) / IDLE_SECONDS)}/s`],
    ['transactions', `${short((after.transactions - before.transactions) / IDLE_SECONDS)}/s`],
    ['CPU of the node', share(server.cpuSeconds() - cpuBefore)],
    ['CPU of the database', share(after.cpuSeconds - before.cpuSeconds)],
  ])
  printStatements('Its most frequent statements', mostFrequent(postgres, url))
}

function topStatements(postgres: PostgresServer, url: string): string[][] {
  return postgres.psql(url, TOP_STATEMENTS).map(row => row.split('|'))
}

function mostFrequent(postgres: PostgresServer, url: string): string[][] {
  return postgres.psql(url, MOST_FREQUENT_STATEMENTS).map(row => row.split('|'))
}

function printStatements(title: string, statements: readonly string[][]): void {
  printTable(title, [
    ['calls', 'rows', 'ms', 'statement'],
    ...statements.map(([calls = '', rows = '', ms = '', ...query]) => [calls, rows, ms, query.join('|')]),
  ])
}

interface Measured {
  readonly name: string
  readonly url: string
  readonly node: Installation
  readonly server: ServerProcess
  readonly messages: number
}

async function measureRow({ postgres }: Bench, row: Measured): Promise<Row> {
  const { name, url, node, server, messages } = row
  await sleep(SETTLE_MS)
  const before = figures(postgres, url)
  const [cpuBefore, began] = [server.cpuSeconds(), performance.now()]
  await send([server], node.key, messages)
  await untilDelivered(postgres, url)
  const seconds = (performance.now() - began) / 1_000
  await sleep(SETTLE_MS)
  const after = figures(postgres, url)
  return {
    name,
    messages,
    perSecond: messages / seconds,
    cpuSeconds: server.cpuSeconds() - cpuBefore,
    database: {
      cpuSeconds: after.cpuSeconds - before.cpuSeconds,
      transactions: after.transactions - before.transactions,
      statements: after.statements - before.statements,
    },
  }
}

async function measureSeveral(bench: Bench): Promise<void> {
  const rates: [number, number][] = []
  for (const count of [1, 2, 4]) rates.push([count, await rateOf(bench, count)])
  const alone = rates[0]?.[1] ?? 1
  printTable(
    'Several nodes',
    [
      ['nodes', 'messages', 'delivered/s', 'of one'],
      ...rates.map(([count, rate]) => [
        `${count}`,
        `${count * MESSAGES_PER_NODE}`,
        short(rate),
        (rate / alone).toFixed(2),
      ]),
    ],
    [
      `Each node has ${SHARE} CPUs by a control group; PostgreSQL, the sink and the clients have the rest of the machine.`,
    ],
  )
}

async function rateOf({ postgres, folder, outgoing }: Bench, count: number): Promise<number> {
  const url = postgres.database(`nodes${count}`)
  const place = join(folder, `${count}`)
  mkdirSync(place)
  const first = await install(place, url)
  const nodes = Array.from({ length: count }, (_, at) => ({
    ...first,
    dataDir: join(place, `node-${at + 1}`),
  }))
  const servers: ServerProcess[] = []
  for (const node of nodes) servers.push(await serve(node, outgoing))
  const free = servers.map(({ pid }) => limitCpu(pid, SHARE))
  // Each node knows the others after a heartbeat.
  await sleep(SETTLE_MS * 2)
  const messages = count * MESSAGES_PER_NODE
  const began = performance.now()
  await send(servers, first.key, messages)
  await untilDelivered(postgres, url)
  const seconds = (performance.now() - began) / 1_000
  await Promise.all(servers.map(server => server.stop()))
  for (const remove of free) remove()
  return messages / seconds
}

/** Through all of them alike. */
async function send(servers: readonly ServerProcess[], key: string, messages: number): Promise<void> {
  await Promise.all(
    servers.map(({ port }, at) =>
      sendLoad({
        port,
        key,
        connections: CLIENTS / servers.length,
        requests: messages / servers.length,
        limitMs: LIMIT_MS,
        body: number => sendRequest(number, recipient(number * servers.length + at, DOMAINS)),
      }),
    ),
  )
}

/** By the totals, since a look into the queue reads every message that waits there. */
async function untilDelivered(postgres: PostgresServer, url: string): Promise<void> {
  const totals = 'from (select sum(accepted) - sum(delivered) as left_over from mail_totals) as t'
  await postgres.until(url, `select left_over = 0 ${totals}`, LIMIT_MS)
}

/** Scheduled for a time that no benchmark reaches, to the destinations of the others. Foreign keys are not looked at: what they refer to is here. */
function waitingMessages(workspaceId: string, count: number): string {
  return `set session_replication_role = replica;
    insert into message_contents (id, workspace_id, created_at, from_address, subject, track_opens, track_clicks)
      values ('waiting', '${workspaceId}', 0, 'a@bench.example', 'Later', 0, 0);
    insert into messages (id, workspace_id, content_id, recipient, status, is_sandbox, created_at)
      select 'waiting ' || n, '${workspaceId}', 'waiting', 'reader@d' || n % ${DOMAINS} || '.example', 'scheduled', 0, 0
      from generate_series(1, ${count}) as n;
    ${insertQueue(workspaceId, count, 'waiting ', '1e15')}`
}

function insertQueue(workspaceId: string, count: number, name: string, dueAt: string): string {
  return `set session_replication_role = replica;
    insert into queue (message_id, workspace_id, destination, priority, lane, attempts, next_attempt_at, expires_at, is_held,
        was_handed_over, enqueued_at, content_id, recipient)
      select '${name}' || n, '${workspaceId}', 'd' || n % ${DOMAINS} || '.example', 0,
        'd' || n % ${DOMAINS} || '.example 0 ${workspaceId}', 0, ${dueAt}, 1e15, 0, 0, 0, 'waiting',
        'reader@d' || n % ${DOMAINS} || '.example'
      from generate_series(1, ${count}) as n`
}

/** Remains in the queue of mail delivered behind a held snapshot: rows and index entries that cannot be removed yet. */
function deliveredMessages(workspaceId: string, count: number): string {
  return `${insertQueue(workspaceId, count, 'delivered ', 'extract(epoch from now()) * 1000')};
    update queue set attempts = 1, claimed_by = 'bench', next_attempt_at = next_attempt_at + 300000 where content_id = 'waiting';
    delete from queue where content_id = 'waiting'`
}

interface Figures {
  readonly cpuSeconds: number
  readonly transactions: number
  readonly statements: number
}

function figures(postgres: PostgresServer, url: string): Figures {
  const [row = ''] = postgres.psql(
    url,
    `select xact_commit, (select sum(calls) from pg_stat_statements s where s.dbid = d.datid)
      from pg_stat_database d where datname = current_database()`,
  )
  const [transactions = 0, statements = 0] = row.split('|').map(Number)
  return { cpuSeconds: postgres.cpuSeconds(), transactions, statements }
}
