/**
 * The public pages as an HTTP handler: routing, limits, forms, languages, headers and error pages.
 *
 * Built by the composition root from the pages of all resources; served beside the API, or on separate listeners
 * (`http.public_listen`). It shares no rate limits, memory budgets or event loop queue with the API, so neither can starve the other.
 * The log names the declared path, never the token.
 * Standards: RFC 9110 (methods; no conditional requests, as nearly everything is `no-store` or never changes), Fetch Standard §3.2 (CORS), RFC 8058 (a POST is
 * never redirected unless its handler does so).
 * Fails: never; errors of a handler become a page, or JSON for a program.
 */
import type { IncomingMessage } from 'node:http'
import Koa, { type Context } from 'koa'
import { AppError, describeError, type ErrorCode } from '../../core/errors.js'
import { given } from '../../core/given.js'
import { actFor } from '../../core/holder.js'
import type { NewId } from '../../core/ids.js'
import type { Log } from '../../world/log.js'
import type { HttpHandler } from '../../world/net/http-connections.js'
import { addressHolder, addressKey, NetworkList } from '../../world/net/ip-address.js'
import type { Clock } from '../../world/time/clock.js'
import { faultAnswer } from '../answer/connection-faults.js'
import { sendPieces, STALLED_MS } from '../answer/download.js'
import { answerEarly } from '../answer/early-answer.js'
import { errorAnswer } from '../answer/error-body.js'
import { SlidingWindow, type OpenWindow } from '../sliding-window.js'
import { documentOf, noticePage, NOTHING_ALLOWED } from './document.js'
import { isJson, mediaTypeOf, readForm } from './form-body.js'
import { chooseLanguage, LANGUAGES } from './languages/language.js'
import type { PageTexts } from './languages/page-texts.js'
import { allowedMethods, PublicPaths, type Matched } from './public-paths.js'
import type {
  FileAnswer,
  Publicity,
  PublicAnswer,
  PublicRequest,
  PublicRoute,
  WholeAnswer,
} from './public-route.js'
import { visitorOf } from './visitor.js'

export interface PublicParts {
  readonly clock: Clock
  readonly log: Log
  readonly newId: NewId
  /** Requests per minute from one address; 0 = unlimited. */
  readonly rateLimit: number
  /** Networks of reverse proxies. */
  readonly trustedProxies: readonly string[]
  /** Where several nodes share the limits; by default each process counts for itself. */
  readonly openWindow?: OpenWindow | undefined
}

export interface PublicApp extends HttpHandler {
  /** Whether the path may belong to a public page. */
  serves(request: IncomingMessage): boolean
}

/** Headers of every answer; a page replaces the policy with what its markup needs. */
export const USUAL_HEADERS = {
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'X-Robots-Tag': 'noindex, nofollow',
  'Content-Security-Policy': NOTHING_ALLOWED,
}

interface Serving extends PublicParts {
  readonly paths: PublicPaths
  readonly windows: SlidingWindow
  readonly proxies: NetworkList
}

export function buildPublicApp(parts: PublicParts, routes: readonly PublicRoute[]): PublicApp {
  const serving: Serving = {
    ...parts,
    paths: new PublicPaths(routes),
    windows: parts.openWindow?.('pages of an address') ?? new SlidingWindow(parts.clock),
    proxies: new NetworkList(parts.trustedProxies),
  }
  const app = new Koa()
  app.silent = true
  app.use(ctx => answer(ctx, serving))
  return {
    serves: ({ url = '' }) => serving.paths.serves(url.split('?', 1)[0] ?? ''),
    handle: app.callback(),
    answerFault(fault) {
      const { status, headers } = faultAnswer(fault, USUAL_HEADERS)
      const { en } = LANGUAGES
      const { text } = documentOf(noticePage(status === 503 ? en.unavailable : en.unreadable), 'en', en)
      return { status, headers: { ...headers, 'Content-Type': 'text/html; charset=utf-8' }, body: text }
    },
  }
}

async function answer(ctx: Context, serving: Serving): Promise<void> {
  const { clock, log, newId } = serving
  const started = clock.monotonic()
  const requestId = newId()
  ctx.set({ 'X-Request-Id': requestId, ...USUAL_HEADERS })
  const matched = serving.paths.match(ctx.path)
  const request = requestOf(ctx, matched, serving)
  try {
    const found = await answerOf(ctx, request, matched, serving)
    if (found && 'pieces' in found) await sendFile(ctx, found, clock)
    else give(ctx, request, found)
  } catch (error) {
    if (isFault(error)) log.error('page failed', { requestId, ...faultOf(error) })
    give(ctx, request, answerToError(error, request))
  }
  const route = matched ? matched.path : 'none'
  const fields = { requestId, route: `${ctx.method} ${route}`, status: ctx.status }
  const ms = Math.round(clock.monotonic() - started)
  if (ctx.status >= 400) log.info('page refused', { ...fields, ms })
  else log.debug('page answered', { ...fields, ms })
  if (!ctx.req.complete) await answerEarly(ctx, clock)
}

function requestOf(ctx: Context, matched: Matched | undefined, serving: Serving): PublicRequest {
  const language = chooseLanguage(ctx.get('Accept-Language'))
  return {
    params: matched?.params ?? {},
    query: new URLSearchParams(ctx.querystring),
    method: ctx.method === 'POST' || ctx.method === 'HEAD' ? ctx.method : 'GET',
    visitor: visitorOf(ctx.req, serving.proxies),
    language,
    texts: LANGUAGES[language],
    wantsJson: isJson(mediaTypeOf(ctx.req)) || isJson(ctx.get('Accept').trim().toLowerCase()),
  }
}

/** @throws AppError, and errors of the handler */
async function answerOf(
  ctx: Context,
  request: PublicRequest,
  matched: Matched | undefined,
  serving: Serving,
): Promise<PublicAnswer | undefined> {
  if (!matched) throw new AppError('not_found', 'there is no such page')
  const method = ctx.method === 'HEAD' ? 'GET' : ctx.method
  const route = matched.routes.find(one => one.method === method)
  if (matched.routes.some(({ isOpenToOrigins }) => isOpenToOrigins)) openToOrigins(ctx)
  if (!route) {
    ctx.set('Allow', allowedMethods(matched.routes))
    if (ctx.method === 'OPTIONS') return undefined
    throw new AppError('method_not_allowed', `this path takes ${allowedMethods(matched.routes)}`)
  }
  if (route.isLimited) await takeFromWindow(request, serving)
  return actFor(addressHolder(request.visitor.address), async () => {
    if (route.method === 'GET') return route.handle(request)
    const form = await readForm(ctx.req, ctx.res, serving.clock, route.takesAnyBody)
    return route.handle({ ...request, form })
  })
}

/** Safe for any origin: such requests carry no cookie or key, and the answer is the same for everybody. */
function openToOrigins(ctx: Context): void {
  ctx.set('Access-Control-Allow-Origin', '*')
  if (ctx.method !== 'OPTIONS') return
  ctx.set({
    'Access-Control-Allow-Methods': 'GET, POST',
    'Access-Control-Allow-Headers': 'Content-Type',
    'Access-Control-Max-Age': '86400',
  })
}

async function takeFromWindow({ visitor }: PublicRequest, { windows, rateLimit }: Serving): Promise<void> {
  const address = addressKey(visitor.address)
  await windows.prepare(address, 1, rateLimit)
  const { isAllowed, retryAfterMs } = windows.take(address, 1, rateLimit)
  if (!isAllowed)
    throw new AppError('rate_limited', `more than ${rateLimit} requests in the last minute`, { retryAfterMs })
}

/** @param found undefined: an empty answer */
function give(
  ctx: Context,
  { language, texts }: PublicRequest,
  found: Exclude<PublicAnswer, FileAnswer> | undefined,
): void {
  if (found === undefined) {
    ctx.status = 204
    return
  }
  if ('redirect' in found) {
    ctx.status = found.status ?? 303
    ctx.set('Location', found.redirect)
    ctx.body = ''
    return
  }
  if ('octets' in found) {
    beginWhole(ctx, found)
    ctx.body = found.octets
    return
  }
  ctx.status = found.status ?? 200
  if (found.retryAfterMs !== undefined)
    ctx.set('Retry-After', String(Math.max(1, Math.ceil(found.retryAfterMs / 1_000))))
  if ('json' in found) {
    ctx.type = 'application/json'
    ctx.body = JSON.stringify(found.json)
    return
  }
  const isIndexable = found.publicity?.isIndexable ?? false
  const { text, contentSecurityPolicy } = documentOf(found.page, language, texts, isIndexable)
  ctx.set({ 'Content-Security-Policy': contentSecurityPolicy, 'Content-Language': language })
  publish(ctx, found.publicity)
  if (found.publicity) ctx.set('Vary', 'Accept-Language')
  ctx.type = 'text/html'
  ctx.body = text
}

function beginWhole(ctx: Context, { mediaType, contentSecurityPolicy, publicity }: WholeAnswer): void {
  ctx.status = 200
  ctx.type = mediaType
  if (contentSecurityPolicy !== undefined) ctx.set('Content-Security-Policy', contentSecurityPolicy)
  publish(ctx, publicity)
}

/** @throws what reading the file throws, before or after its first piece */
async function sendFile(ctx: Context, file: FileAnswer, clock: Clock): Promise<void> {
  const source = file.pieces[Symbol.asyncIterator]()
  const first = await source.next()
  beginWhole(ctx, file)
  ctx.length = file.length
  await sendPieces(ctx, source, first, clock, STALLED_MS)
}

function publish(ctx: Context, publicity: Publicity | undefined): void {
  if (!publicity) return
  const { cacheSeconds, isImmutable = false, isIndexable } = publicity
  ctx.set('Cache-Control', `public, max-age=${cacheSeconds}${isImmutable ? ', immutable' : ''}`)
  if (isIndexable) ctx.remove('X-Robots-Tag')
}

/** `unavailable` has been logged where it was detected. */
function isFault(error: unknown): boolean {
  const { status, code } = errorAnswer(error)
  return status >= 500 && code !== 'unavailable'
}

function faultOf(error: unknown) {
  const cause = error instanceof AppError ? error.cause : undefined
  const stack = error instanceof Error ? error.stack : undefined
  return { error: describeError(cause ?? error), ...given({ stack }) }
}

function answerToError(
  error: unknown,
  { texts, wantsJson }: PublicRequest,
): Exclude<PublicAnswer, FileAnswer> {
  const { status, code, body } = errorAnswer(error)
  const retry = given({ retryAfterMs: error instanceof AppError ? error.retryAfterMs : undefined })
  if (wantsJson) return { json: body, status, ...retry }
  return { page: noticePage(noticeOf(code, texts)), status, ...retry }
}

function noticeOf(code: ErrorCode, texts: PageTexts) {
  switch (code) {
    case 'not_found':
      return texts.notFound
    case 'rate_limited':
      return texts.tooMany
    case 'unavailable':
      return texts.unavailable
    case 'method_not_allowed':
      return texts.wrongMethod
    case 'internal_error':
      return texts.broken
    default:
      return texts.unreadable
  }
}
