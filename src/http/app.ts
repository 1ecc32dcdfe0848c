/**
 * The API as an HTTP handler: request ids, errors, access control, bodies, validation and the declared routes.
 *
 * Built by the composition root from the list of routes. Only this file, the gate and the files that answer for them
 * (`early-answer.ts`, `undeclared.ts`) depend on Koa and its router.
 */
import type { IncomingMessage } from 'node:http'
import Router from '@koa/router'
import Koa, { type Context, type Middleware } from 'koa'
import { AppError, describeError } from '../core/errors.js'
import { actFor, type Holder } from '../core/holder.js'
import type { NewId } from '../core/ids.js'
import type { Clock } from '../world/time/clock.js'
import { openExpiryTime } from '../world/time/expiry-time.js'
import type { HttpHandler } from '../world/net/http-connections.js'
import type { Log } from '../world/log.js'
import { readJsonBody, type BodyParts } from './body/body.js'
import { LargeBodies, type ReadBody } from './body/large-bodies.js'
import { digested, openUpload } from './body/upload.js'
import { bodyDigest } from './body/body-digest.js'
import { faultAnswer } from './answer/connection-faults.js'
import { DownloadPlaces, sendDownload, type Download } from './answer/download.js'
import { answerEarly } from './answer/early-answer.js'
import { sendEvents, type EventStream } from './answer/event-stream.js'
import { FixedAnswers } from './answer/fixed-answers.js'
import { errorAnswer, windowHeaders } from './answer/error-body.js'
import { Gate, type Caller } from './gate.js'
import { makeClaim, readIdempotencyKey, Repeats, type KeptAnswers } from './idempotency.js'
import { answerBudget, bodyBudget, type MemoryBudget } from './memory-budget.js'
import { answerEtag, isNoneMatch, readIfMatch } from './preconditions.js'
import type { Authenticate } from './principal.js'
import type { OperatorAccess } from './operator.js'
import { acceptsIdempotencyKey, ADMIN_BASE, API_BASE, bodyBounds, type Route } from './route.js'
import type { OpenWindow } from './sliding-window.js'
import { answerUndeclared } from './undeclared.js'

/** @param route method and declared path, e.g. `POST /email/send`; undefined if none matched @param ms until the answer was built */
export type OnAnswer = (route: string | undefined, status: number, ms: number) => void

/** @param path as declared, e.g. `/lists/:id` @param workspaceId undefined if the request names none */
export type OnWrite = (path: string, workspaceId: string | undefined) => void

export interface AppParts {
  /** On the control socket every caller is a user of the shell, and control routes are served too. */
  readonly serves?: 'network' | 'control'
  readonly clock: Clock
  readonly log: Log
  readonly newId: NewId
  readonly authenticate: Authenticate
  readonly operators?: OperatorAccess
  /** From whose pages operators may write with their session. */
  readonly publicUrl?: string
  /** Networks of reverse proxies whose X-Forwarded-For names the client. */
  readonly trustedProxies?: readonly string[]
  readonly anonymousRateLimit: number
  /** Where several nodes share the limits; by default each process counts for itself. */
  readonly openWindow?: OpenWindow | undefined
  /** Called for each answer, for metrics. */
  readonly onAnswer?: OnAnswer
  /** Called after each write that succeeded, for open screens. */
  readonly onWrite?: OnWrite
  /** Required if a route accepts an Idempotency-Key; without it the header is ignored. */
  readonly keptAnswers?: KeptAnswers
}

/** Shared state of all requests. */
interface Serving extends BodyParts {
  readonly isControl: boolean
  readonly log: Log
  readonly gate: Gate
  readonly repeats: Repeats | undefined
  readonly answers: MemoryBudget
  readonly fixed: FixedAnswers
  readonly downloads: DownloadPlaces
  readonly onWrite: OnWrite
}

const USUAL_HEADERS = { 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' }

export function buildApp(parts: AppParts, routes: readonly Route[]): HttpHandler {
  const { clock, log } = parts
  const isControl = parts.serves === 'control'
  const gate = new Gate(parts, isControl)
  for (const route of routes) mustBeServedHere(route, parts.serves ?? 'network')
  const serving: Serving = {
    isControl,
    clock,
    log,
    gate,
    large: new LargeBodies(parts),
    memory: bodyBudget(Math.max(0, ...routes.map(route => bodyBounds(route.head).octets))),
    answers: answerBudget(),
    fixed: new FixedAnswers(),
    downloads: new DownloadPlaces(),
    onWrite: parts.onWrite ?? (() => {}),
    repeats: parts.keptAnswers && new Repeats(parts.keptAnswers, openExpiryTime(clock), log),
  }
  const { dispatch, declaredAt } = routerOf(routes, serving)
  const app = new Koa()
  app.silent = true
  app.use(async (ctx, next) => {
    const requestId = parts.newId()
    const started = clock.monotonic()
    ctx.state['requestId'] = requestId
    ctx.set({ 'X-Request-Id': requestId, ...USUAL_HEADERS })
    try {
      await next()
      if (ctx.state['route'] === undefined)
        await answerUndeclared(ctx, gate, declaredAt(ctx), apiOf(ctx.path))
    } catch (error) {
      answerError(ctx, error, gate, log)
    }
    // An event stream is answered when it begins.
    const answeredAt = (ctx.state['answeredAt'] as number | undefined) ?? clock.monotonic()
    const ms = answeredAt - started
    logRequest(ctx, serving, Math.round(ms))
    parts.onAnswer?.(ctx.state['route'] as string | undefined, ctx.status, ms)
    if (!ctx.req.complete) await answerEarly(ctx, clock)
  })
  app.use(dispatch)
  return {
    handle: app.callback(),
    answerFault(fault, address) {
      const requestId = parts.newId()
      const headers = {
        'X-Request-Id': requestId,
        ...USUAL_HEADERS,
        ...windowHeaders(gate.windowOf(address)),
      }
      const answer = faultAnswer(fault, headers)
      log.info('request refused', { requestId, route: 'none', status: answer.status, fault })
      return answer
    },
  }
}

/**
 * Any web page open in the operator's browser can call a route that needs no key, so on the network such routes are read-only.
 *
 * @throws Error: a programming error
 */
function mustBeServedHere({ head }: Route, serves: 'network' | 'control'): void {
  const isMisplaced = head.access === 'control' && serves !== 'control'
  if (isMisplaced) throw new Error(`${head.method} ${head.path} must not be served on the ${serves}`)
}

export function fullPath(route: Route): string {
  return route.head.isAtRoot ? route.head.path : baseOf(route.head) + route.head.path
}

function baseOf({ api }: Pick<Route['head'], 'api'>): string {
  return api === 'admin' ? ADMIN_BASE : API_BASE
}

/** The API that the path belongs to, if any. Paths are matched case-insensitively. */
function apiOf(path: string): string | undefined {
  return [API_BASE, ADMIN_BASE].find(base => `${path}/`.toLowerCase().startsWith(`${base}/`))
}

function routerOf(routes: readonly Route[], serving: Serving) {
  const router = new Router()
  const byPath = new Map<string, Route[]>()
  // A router tries all its paths in turn, so each resource gets its own.
  const byResource = new Map<string, Router>()
  const fixedPaths = new Set(routes.map(fullPath).filter(path => parametersIn(path) === 0))
  for (const route of routes) {
    const path = fullPath(route)
    byPath.set(path, [...(byPath.get(path) ?? []), route])
    const answer: Middleware = async (ctx, next) => {
      // `GET /email/send` must not match `/email/:messageId`: fixed paths win, whatever the method.
      if (parametersIn(path) > 0 && fixedPaths.has(ctx.path.toLowerCase().replace(/\/$/, ''))) {
        await next()
        return
      }
      // The declared path, because actual paths can contain addresses and tokens.
      ctx.state['route'] = `${route.head.method} ${route.head.path}`
      await serve(ctx, route, serving)
    }
    const resource = resourceIn(path)
    const own = byResource.get(resource) ?? new Router()
    byResource.set(resource, own)
    for (const each of [router, own]) each.register(path, [route.head.method], answer)
  }
  const middlewares = new Map([...byResource].map(([resource, own]) => [resource, own.routes()]))
  const dispatch: Middleware = (ctx, next) => {
    const middleware = middlewares.get(resourceIn(ctx.path)) as Middleware | undefined
    return middleware ? (middleware(ctx, next) as Promise<void>) : next()
  }
  /** All routes of the requested path, whatever the method; `/email/send` wins over `/email/:messageId`. */
  const declaredAt = (ctx: Context): Route[] => {
    const paths = new Set(router.match(ctx.path, ctx.method).path.map(({ path }) => String(path)))
    const [nearest = ''] = [...paths].sort((a, b) => parametersIn(a) - parametersIn(b))
    return byPath.get(nearest) ?? []
  }
  return { dispatch, declaredAt }
}

/** The first path segment, after the API base if present. It is never a parameter. */
function resourceIn(path: string): string {
  const start = (apiOf(path)?.length ?? 0) + 1
  const end = path.indexOf('/', start)
  return path.slice(0, end === -1 ? undefined : end).toLowerCase()
}

function parametersIn(path: string): number {
  return path.split(':').length - 1
}

/** The declared path with its parameters filled in, so that spelling variants compare equal. */
function pathWith(route: Route, params: object): string {
  return Object.entries(params).reduce(
    (path, [name, value]) => path.replace(`:${name}`, () => encodeURIComponent(String(value))),
    fullPath(route),
  )
}

/** Serves one request. Errors are checked in the order of the contract: 401, 429, 403, schema, then the handler's own. */
async function serve(ctx: Context, route: Route, serving: Serving): Promise<void> {
  const caller = await serving.gate.admit(ctx, route.head)
  const holder = serving.gate.holderOf(ctx, caller)
  await actFor(holder, () => serveAdmitted(ctx, route, caller, holder, serving))
}

async function serveAdmitted(
  ctx: Context,
  route: Route,
  caller: Caller,
  holder: Holder,
  serving: Serving,
): Promise<void> {
  const { repeats } = serving
  const { principal } = caller
  const params = route.validateParams(ctx['params'])
  const query = route.validateQuery(ctx.query)
  const { head } = route
  const key =
    repeats && acceptsIdempotencyKey(head)
      ? readIdempotencyKey(ctx.req, head.requiresIdempotencyKey === true)
      : undefined
  const isRead = head.method === 'GET'
  const precondition = head.checksEtag ? readIfMatch(ctx.get('If-Match')) : undefined
  const { value: body, digest } = await readBody(ctx, route, holder, key !== undefined, serving)
  const opened = route.head.upload && openUpload(ctx.req, ctx.res, route.head.upload, serving.clock)
  const uploaded = opened && key !== undefined ? digested(opened, query) : undefined
  const upload = uploaded?.upload ?? opened
  const requestId = ctx.state['requestId'] as string
  const claim =
    key === undefined || digest === undefined || !repeats
      ? undefined
      : makeClaim(
          { principal, method: head.method, path: pathWith(route, ctx['params'] as object) },
          key,
          Object.keys(ctx.query).length > 0 ? bodyDigest([digest, query]) : digest,
          repeats.time(),
        )
  const execute = () =>
    route.handle({
      params: params as never,
      query: query as never,
      body,
      ...caller,
      claim,
      requestId,
      peer: serving.gate.clientOf(ctx),
      header: name => ctx.get(name),
      ...(precondition ? { precondition } : {}),
      ...(upload ? { upload } : {}),
    })
  if (route.response.kind === 'events') {
    const { value } = await execute()
    ctx.state['answeredAt'] = serving.clock.monotonic()
    await sendEvents(ctx, value as EventStream, serving.clock)
    return
  }
  if (route.response.kind === 'download') {
    const giveBack = serving.downloads.take(holder)
    try {
      const { value } = await execute()
      await sendDownload(ctx, value as Download, route.head.mediaType ?? 'text/plain', serving)
    } finally {
      giveBack()
    }
    return
  }
  const answered =
    claim && repeats
      ? repeats.answer(head, claim, execute, uploaded?.digest)
      : execute().then(first => ({ answer: first, isRepeat: false }))
  const { answer, isRepeat } = await answered.finally(() => uploaded?.close())
  if (claim) ctx.set('X-Idempotency-Status', isRepeat ? 'cached' : 'new')
  const { status, value } = answer
  if (!isRead && !head.isReadOnly && !isRepeat)
    serving.onWrite(head.path, caller.workspaceId ?? (principal.liveWorkspaceId || undefined))
  if ('headers' in answer) ctx.set(answer.headers)
  if (status === 201) ctx.set('Location', locationOf(route, value, params))
  if (answer.etag !== undefined) {
    const etag = answerEtag(answer.etag, value)
    ctx.set('ETag', etag)
    if (isRead && !isNoneMatch(ctx.get('If-None-Match'), etag)) {
      ctx.status = 304
      return
    }
  }
  await give(ctx, route, isWhole(route) ? value : { data: value }, holder, serving)
  ctx.status = status
}

/** Path of a created resource. @throws Error: a programming error */
function locationOf({ head }: Route, value: unknown, params: unknown): string {
  const base = baseOf(head)
  if (head.location) return base + head.location(value as never, params as never)
  const { id } = value as { readonly id?: unknown }
  if (typeof id !== 'string') throw new Error(`${head.method} ${head.path}: no location for a 201`)
  const [collection = ''] = head.path.split('/:')
  return `${base}${collection}/${encodeURIComponent(id)}`
}

/** Whether a handler's value is sent without a `data` wrapper. */
function isWhole({ response }: Route): boolean {
  return response.kind === 'bare' || response.kind === 'list'
}

/** @param wantsDigest whether the request has an Idempotency-Key */
async function readBody(
  ctx: Context,
  { head, body: rule }: Route,
  holder: Holder,
  wantsDigest: boolean,
  serving: Serving,
): Promise<ReadBody> {
  if (rule && !(head.isBodyOptional && !hasBody(ctx.req)))
    return readJsonBody(ctx.req, ctx.res, rule, holder, wantsDigest, serving)
  const value = rule?.validate({})
  return { value, digest: wantsDigest ? bodyDigest(value) : undefined }
}

/** RFC 9112 §6.3. */
function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || !/^0*$/.test(headers['content-length'] ?? '')
}

async function give(
  ctx: Context,
  route: Route,
  body: unknown,
  holder: Holder,
  serving: Serving,
): Promise<void> {
  const { headers = {}, mediaType = 'application/json', method, isFixed } = route.head
  const octets = isFixed
    ? await serving.fixed.encode(ctx, route.head, () => serialize(route, body))
    : serialize(route, body)
  // Answers of writes are never refused for lack of memory; reads can be retried.
  if (method === 'GET' && !isFixed) {
    const hold = serving.answers.hold(holder)
    hold.reach(octets.length)
    ctx.res.once('close', () => hold.release())
  }
  ctx.set(headers)
  ctx.type = mediaType
  ctx.body = octets
}

/** Text of a route with its own media type is sent unchanged, anything else as JSON. */
function serialize({ head }: Route, body: unknown): Buffer {
  return Buffer.from(typeof body === 'string' && head.mediaType ? body : JSON.stringify(body))
}

function answerError(ctx: Context, error: unknown, gate: Gate, log: Log): void {
  const answer = errorAnswer(error)
  ctx.state['errorCode'] = answer.code
  if (!ctx.res.hasHeader('X-RateLimit-Limit')) {
    if (answer.status >= 500) gate.showAddress(ctx)
    else gate.countAddress(ctx)
  }
  // `unavailable` has been logged where it was detected.
  if (answer.status >= 500 && answer.code !== 'unavailable') {
    const cause = error instanceof AppError ? error.cause : undefined
    log.error('request failed', {
      requestId: ctx.state['requestId'] as string,
      error: describeError(cause ?? error),
      stack: error instanceof Error ? error.stack : undefined,
    })
  }
  ctx.set(answer.headers)
  ctx.status = answer.status
  ctx.type = 'application/json'
  ctx.body = JSON.stringify(answer.body)
  // RFC 9112 §9.6: the rest of a late body must not be read as the next request.
  if (answer.status === 408) ctx.set('Connection', 'close')
}

function logRequest(ctx: Context, { log, gate }: Pick<Serving, 'log' | 'gate'>, ms: number): void {
  const fields = {
    requestId: ctx.state['requestId'] as string,
    route: (ctx.state['route'] as string | undefined) ?? 'none',
    status: ctx.status,
    code: ctx.state['errorCode'] as string | undefined,
    // Absent for an invalid key, which itself must not be logged.
    keyId: ctx.state['keyId'] as string | undefined,
    peer: gate.clientOf(ctx),
    ms,
  }
  if (ctx.status >= 400) log.info('request refused', fields)
  else log.debug('request answered', fields)
}
