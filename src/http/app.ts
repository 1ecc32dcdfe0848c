/**
 * The Koa application: request ids, errors, the gate, validation, and the declared routes.
 *
 * Built by the composition root from the list of routes. Koa and its router are known only here and in the gate.
 */
import Router from '@koa/router'
import Koa, { type Context } from 'koa'
import { AppError, describeError } from '../core/errors.js'
import type { NewId } from '../core/ids.js'
import type { Clock } from '../world/clock.js'
import { openExpiryTime } from '../world/expiry-time.js'
import type { Log } from '../world/log.js'
import { readJsonBody } from './body.js'
import { errorAnswer } from './error-body.js'
import { Gate } from './gate.js'
import { makeClaim, readIdempotencyKey, Repeats, type FindAnswer } from './idempotency.js'
import { listBody } from './pagination.js'
import type { Authenticate } from './principal.js'
import type { Route } from './route.js'

export const API_BASE = '/api/v1'

/** Bodies of requests that are small by nature; sends declare their own bound. */
const USUAL_BODY_LIMIT = 256 * 1_024

export interface AppParts {
  /** What it listens on: routes of the control socket are served there alone, and no others. */
  readonly serves?: 'network' | 'control'
  readonly clock: Clock
  readonly log: Log
  readonly newId: NewId
  readonly authenticate: Authenticate
  readonly anonymousRateLimit: number
  /** Needed where a route takes an Idempotency-Key. */
  readonly findAnswer?: FindAnswer
}

export function buildApp(parts: AppParts, routes: readonly Route[]): Koa {
  const gate = new Gate(parts)
  const repeats = new Repeats(
    parts.findAnswer ?? (() => Promise.resolve(undefined)),
    openExpiryTime(parts.clock),
  )
  const router = new Router()
  for (const route of routes) {
    mustBeServedHere(route, parts.serves ?? 'network')
    router.register(fullPath(route), [route.head.method], async ctx => {
      // The declared path, not the one asked for: paths can carry addresses and tokens.
      ctx.state['route'] = `${route.head.method} ${route.head.path}`
      await serve(ctx, route, gate, repeats)
    })
  }
  const app = new Koa()
  app.silent = true
  app.use(async (ctx, next) => {
    const requestId = parts.newId()
    const started = parts.clock.monotonic()
    ctx.state['requestId'] = requestId
    ctx.set('X-Request-Id', requestId)
    ctx.set('Cache-Control', 'no-store')
    ctx.set('X-Content-Type-Options', 'nosniff')
    try {
      await next()
      if (ctx.state['route'] === undefined) throw new AppError('not_found', 'no such path')
    } catch (error) {
      await answerError(ctx, error, gate, parts.log)
    }
    logRequest(ctx, parts.log, Math.round(parts.clock.monotonic() - started))
  })
  app.use(router.routes())
  return app
}

/**
 * What needs no key is open to every web page that the operator's browser shows, so on the network it changes nothing.
 *
 * @throws Error: a fault of the program
 */
function mustBeServedHere({ head }: Route, serves: 'network' | 'control'): void {
  const isAmiss =
    (head.access === 'control') !== (serves === 'control') ||
    (head.access === 'loopback' && head.method !== 'GET')
  if (isAmiss) throw new Error(`${head.method} ${head.path} must not be served on the ${serves}`)
}

export function fullPath(route: Route): string {
  return route.head.isAtRoot ? route.head.path : API_BASE + route.head.path
}

/** The declared path with its parameters filled in: however it was written, it is the same. */
function pathWith(route: Route, params: object): string {
  return Object.entries(params).reduce(
    (path, [name, value]) => path.replace(`:${name}`, () => encodeURIComponent(String(value))),
    fullPath(route),
  )
}

/** One request, in the contract's order of errors: 401, 429, 403, schema, then whatever the handler finds. */
async function serve(ctx: Context, route: Route, gate: Gate, repeats: Repeats): Promise<void> {
  const principal = await gate.admit(ctx, route.head.access)
  const params = route.validateParams(ctx['params'])
  const query = route.validateQuery(ctx.query)
  const { idempotency, method } = route.head
  const key = idempotency && readIdempotencyKey(ctx.req, idempotency)
  const body = route.validateBody?.(await readJsonBody(ctx.req, route.head.bodyLimit ?? USUAL_BODY_LIMIT))
  const requestId = ctx.state['requestId'] as string
  const claim =
    key === undefined
      ? undefined
      : makeClaim(
          { principal, method, path: pathWith(route, ctx['params'] as object) },
          key,
          body,
          repeats.time(),
        )
  const execute = () =>
    route.handle({ params: params as never, query: query as never, body, principal, claim, requestId })
  const { answer, isRepeat } = claim
    ? await repeats.answer(claim, execute)
    : { answer: await execute(), isRepeat: false }
  if (claim) ctx.set('X-Idempotency-Status', isRepeat ? 'cached' : 'new')
  const { status, value } = answer
  const page = 'page' in answer ? answer.page : undefined
  ctx.status = status
  if (route.head.headers) ctx.set(route.head.headers)
  if (page) ctx.body = listBody(value as never, page)
  else ctx.body = route.response.kind === 'bare' ? value : { data: value }
}

async function answerError(ctx: Context, error: unknown, gate: Gate, log: Log): Promise<void> {
  const answer = errorAnswer(error)
  if (!ctx.res.hasHeader('X-RateLimit-Limit')) gate.countAddress(ctx)
  // What is unavailable is known already, and told by whoever found it.
  if (answer.status >= 500 && answer.code !== 'unavailable') {
    const cause = error instanceof AppError ? error.cause : undefined
    log.error('request failed', {
      requestId: ctx.state['requestId'] as string,
      error: describeError(cause ?? error),
      stack: error instanceof Error ? error.stack : undefined,
    })
  }
  for (const [name, value] of Object.entries(answer.headers)) ctx.set(name, value)
  ctx.status = answer.status
  ctx.body = answer.body
  await discardRest(ctx)
}

/** How much of an unread body is taken in and thrown away, so that the client gets to read why it was refused. */
const DISCARD_LIMIT = 64 * 1_024 * 1_024

/**
 * Many clients send all of a request before they read. Answering and closing before that makes the kernel throw the
 * answer away (TCP reset), so the rest of a refused body is read first, up to a bound; the server's own request timeout
 * bounds it in time.
 */
async function discardRest({ req, response }: Context): Promise<void> {
  if (req.complete) return
  response.set('Connection', 'close')
  let discarded = 0
  await new Promise<void>(resolve => {
    req.on('data', (chunk: Buffer) => {
      discarded += chunk.length
      if (discarded > DISCARD_LIMIT) resolve()
    })
    req.once('end', resolve).once('error', resolve).once('close', resolve)
    req.resume()
  })
}

function logRequest(ctx: Context, log: Log, ms: number): void {
  const fields = {
    requestId: ctx.state['requestId'] as string,
    route: (ctx.state['route'] as string | undefined) ?? 'none',
    status: ctx.status,
    ms,
  }
  if (ctx.status >= 400) log.info('request refused', fields)
  else log.debug('request answered', fields)
}
