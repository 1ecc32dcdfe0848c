/**
 * How commands reach an appliance: every command that has an API is a client of it.
 *
 * With `--server` and `--token` (or POSTROAD_SERVER and POSTROAD_TOKEN) it is a remote one. Otherwise it is the server running on the data
 * folder, through its control socket or, if none runs, an API that the command serves itself on a private socket while it runs.
 * Errors of the API become the AppError they were. Rate-limited requests are repeated when the server says.
 */
import { userInfo } from 'node:os'
import { requireInitialised } from '../appliance/appliance.js'
import { Settings } from '../config/settings.js'
import { isServing } from '../db/sqlite/serve-lock.js'
import { controlSocketPath } from '../appliance/listeners/control.js'
import { openCommandApi, type CommandNeeds } from '../appliance/command-api.js'
import { AppError, describeError, type ErrorCode } from '../core/errors.js'
import { given } from '../core/given.js'
import { isUuid } from '../core/ids.js'
import { ADMIN_BASE, API_BASE } from '../http/route.js'
import { streamRequest, type StreamResponse } from '../world/net/stream-request.js'
import {
  configRequest,
  didYouMean,
  UsageError,
  withOpened,
  type CliContext,
  type CommonOptions,
} from './context.js'

export type Query = Readonly<Record<string, string | number | boolean | undefined>>

/** A client of one of the two APIs. Paths are below the API's base, e.g. `/queue`. Each method returns `data` of the answer. */
export interface ApiClient {
  get<T>(path: string, query?: Query): Promise<T>
  /** @returns up to `limit` entries, over as many pages as that takes */
  list<T>(path: string, query: Query, limit: number): Promise<T[]>
  /** @param body sent as JSON */
  send<T>(
    method: 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    path: string,
    body?: unknown,
    query?: Query,
  ): Promise<T>
  upload<T>(path: string, file: AsyncIterable<Buffer>, mediaType: string, query?: Query): Promise<T>
  /** The octets of a download. */
  download(path: string, query?: Query): Promise<AsyncIterable<Buffer>>
}

export interface Api {
  readonly admin: ApiClient
  /** The REST API in a workspace. */
  inWorkspace(workspaceId: string, sandbox?: { readonly isSandbox: boolean }): ApiClient
  /** @param named id, or name in any case @throws AppError not_found */
  findWorkspaceId(named: string): Promise<string>
  readonly isRemote: boolean
  /** False if no server runs and the command serves the API to itself. */
  readonly isServing: boolean
  /** The command serves the API to itself, but a server has started since. */
  hasServerStarted(): boolean
}

/**
 * Calls `work` with the appliance's API. `options.workspace`, if given, is an id when it is called.
 *
 * @param needs what has to run for the command if no server does
 */
export async function withApi<T>(
  context: CliContext,
  options: CommonOptions,
  work: (api: Api) => Promise<T>,
  needs: CommandNeeds = {},
): Promise<T> {
  return connected(context, options, needs, async target => {
    const api = openApi(target, context)
    const given = options as { workspace?: unknown }
    if (typeof given.workspace === 'string') given.workspace = await api.findWorkspaceId(given.workspace)
    return work(api)
  })
}

interface Target {
  readonly origin: string
  readonly headers: Readonly<Record<string, string>>
  readonly socketPath?: string
  /** The command serves the API of this data folder to itself. */
  readonly own?: { readonly dataDir: string }
}

/** Name of the user who runs the command, for the activity log; under sudo, of the one who called it. */
export function shellUser({ env }: Pick<CliContext, 'env'>): string {
  return env['SUDO_USER'] ?? userInfo().username
}

async function connected<T>(
  context: CliContext,
  options: CommonOptions,
  needs: CommandNeeds,
  work: (target: Target) => Promise<T>,
): Promise<T> {
  const remote = remoteTarget(context, options)
  if (remote) return work(remote)
  const settings = new Settings(configRequest(context, options))
  const { config } = settings.started
  requireInitialised(config)
  const user = encodeURIComponent(shellUser(context))
  const local = { origin: 'http://localhost', headers: { 'X-Shell-User': user } }
  if (isServing(config.dataDir)) return work({ ...local, socketPath: controlSocketPath(config.dataDir) })
  return withOpened(context, config, async appliance => {
    const api = await openCommandApi(appliance, { ...needs, settings })
    try {
      return await work({ ...local, socketPath: api.socketPath, own: config })
    } finally {
      await api.close()
    }
  })
}

/** Whether the command is for a remote appliance. */
export function hasRemote({ env }: CliContext, { server }: CommonOptions): boolean {
  return (server ?? env['POSTROAD_SERVER'] ?? '') !== ''
}

/** @throws UsageError */
function remoteTarget({ env }: CliContext, options: CommonOptions): Target | undefined {
  const server = options.server ?? env['POSTROAD_SERVER']
  if (server === undefined || server === '') return undefined
  const url = URL.canParse(server) ? new URL(server) : undefined
  if (!url || !['http:', 'https:'].includes(url.protocol))
    throw new UsageError(`--server ${server} is not an http or https URL, e.g. https://mail.example.com`)
  const token = options.token ?? env['POSTROAD_TOKEN']
  if (token === undefined || token === '')
    throw new UsageError('--server requires an operator token: set POSTROAD_TOKEN, or pass --token')
  return { origin: url.origin, headers: { Authorization: `Bearer ${token}` } }
}

function openApi(target: Target, context: CliContext): Api {
  const admin = openClient(target, context, ADMIN_BASE, {})
  return {
    admin,
    inWorkspace: (workspaceId, { isSandbox } = { isSandbox: false }) =>
      openClient(target, context, API_BASE, {
        'X-Workspace': workspaceId,
        ...(isSandbox ? { 'X-Sandbox': 'true' } : {}),
      }),
    async findWorkspaceId(named) {
      if (isUuid(named)) return named
      const all = await admin.list<{ id: string; name: string }>('/workspaces', {}, 100_000)
      const found = all.find(({ name }) => name.toLowerCase() === named.toLowerCase())
      if (found) return found.id
      const names = all.map(({ name }) => name)
      throw new AppError('not_found', `no workspace ${named}${didYouMean(named, names)}`)
    },
    isRemote: target.socketPath === undefined,
    isServing: target.own === undefined,
    hasServerStarted: () => target.own !== undefined && isServing(target.own.dataDir),
  }
}

const PAGE = 1_000
/** A server that accepts a request sends something within this time, ms. */
const SILENCE_MS = 120_000
const MAX_REPEATS = 5
/** The limits of the APIs are per minute. A longer wait, e.g. for an hourly sending limit, is left to the user. */
const MAX_RETRY_AFTER_MS = 60_000

interface RequestBody {
  readonly body: string | AsyncIterable<Buffer>
  /** Media type. */
  readonly type: string
}

function openClient(
  target: Target,
  { world: { clock }, complain }: CliContext,
  base: string,
  headers: Readonly<Record<string, string>>,
): ApiClient {
  async function call(
    method: string,
    path: string,
    query: Query,
    sent?: RequestBody,
  ): Promise<StreamResponse> {
    const url = new URL(target.origin + base + path)
    for (const [name, value] of Object.entries(query))
      if (value !== undefined) url.searchParams.set(name, String(value))
    const { socketPath } = target
    const attempt = () =>
      streamRequest({
        method,
        url: url.href,
        silenceMs: SILENCE_MS,
        ...given({ socketPath, body: sent?.body }),
        headers: { ...target.headers, ...headers, ...given({ 'Content-Type': sent?.type }) },
      }).catch((error: unknown) => {
        throw new AppError('unavailable', `cannot reach ${target.origin}: ${describeError(error)}`, {
          cause: error,
        })
      })
    let answer = await attempt()
    // A stream is gone after the first attempt.
    const repeats = typeof sent?.body === 'object' ? 0 : MAX_REPEATS
    for (let n = 0; n < repeats; n++) {
      const waitMs = retryAfterMs(answer)
      if (waitMs === undefined) break
      await octetsOf(answer.body)
      complain(`the server limits requests; trying again in ${Math.ceil(waitMs / 1_000)} s`)
      await clock.sleep(waitMs)
      answer = await attempt()
    }
    if (answer.status >= 400) throw await errorOf(answer, target.origin)
    return answer
  }
  const json = async <T>(answer: StreamResponse) => JSON.parse(await textOf(answer.body)) as T
  const data = async <T>(answer: StreamResponse) =>
    answer.status === 204 ? (undefined as T) : (await json<{ data: T }>(answer)).data
  return {
    get: async (path, query = {}) => data(await call('GET', path, query)),
    async list<T>(path: string, query: Query, limit: number) {
      const items: T[] = []
      for (let after: string | undefined; items.length < limit;) {
        const position = after === undefined ? { offset: items.length } : { after }
        const found = await json<ListAnswer<T>>(
          await call('GET', path, { ...query, limit: Math.min(PAGE, limit - items.length), ...position }),
        )
        items.push(...found.data)
        if (!found.pagination.has_more) break
        after = found.pagination.next_cursor ?? undefined
      }
      return items
    },
    send: async (method, path, body, query = {}) =>
      data(
        await call(
          method,
          path,
          query,
          body === undefined ? undefined : { body: JSON.stringify(body), type: 'application/json' },
        ),
      ),
    upload: async (path, file, mediaType, query = {}) =>
      data(await call('POST', path, query, { body: file, type: mediaType })),
    download: async (path, query = {}) => (await call('GET', path, query)).body,
  }
}

interface ListAnswer<T> {
  readonly data: T[]
  readonly pagination: { readonly has_more: boolean; readonly next_cursor?: string | null }
}

/** The text of a download. */
export async function textOf(body: AsyncIterable<Buffer>): Promise<string> {
  return (await octetsOf(body)).toString()
}

export async function octetsOf(body: AsyncIterable<Buffer>): Promise<Buffer> {
  const pieces: Buffer[] = []
  for await (const piece of body) pieces.push(piece)
  return Buffer.concat(pieces)
}

/** @returns undefined unless the request was refused by a rate limit and soon may be repeated */
function retryAfterMs({ status, headers }: StreamResponse): number | undefined {
  const seconds = Number(headers['retry-after'] ?? Number.NaN)
  return status === 429 && seconds * 1_000 <= MAX_RETRY_AFTER_MS ? seconds * 1_000 : undefined
}

/** The error as the API threw it. */
async function errorOf(answer: StreamResponse, origin: string): Promise<AppError> {
  const text = await textOf(answer.body)
  try {
    const { error } = JSON.parse(text) as { error: { code: ErrorCode; message: string; path?: string } }
    return new AppError(error.code, error.message, error.path === undefined ? {} : { path: error.path })
  } catch {
    return new AppError('internal_error', `${origin} answered ${answer.status}; is it a Postroad server?`)
  }
}
