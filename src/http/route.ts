/**
 * How a route is declared: one object that gives the validation, the handler's types and the OpenAPI page.
 *
 * A resource's `routes.ts` makes these; `app.ts` mounts them, `openapi/document.ts` describes them. Handlers know no Koa.
 */
import type { Static, TObject, TSchema } from 'typebox'
import Type from 'typebox'
import type { ErrorCode } from '../core/errors.js'
import type { LoopShare } from '../world/time/loop-share.js'
import type { Download } from './answer/download.js'
import type { BodyBounds } from './body/body.js'
import type { Upload, UploadRules } from './body/upload.js'
import type { IdempotencyClaim } from './idempotency.js'
import { SMALL_BODY_VALUES } from './body/json-whole.js'
import { Tagged, type Precondition } from './preconditions.js'
import { cursorPageOf, listBody, pageOf, takesCursor, type Listing, type Page } from './pagination.js'
import type { Permission, Principal } from './principal.js'
import { absentWhereNull } from './absent-fields.js'
import { largeValidator } from './validate-large.js'
import { textValidator, validator } from './validate.js'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/**
 * Who may call: anybody, only this machine itself (to read), whoever can open the control socket, any valid key, or a key with
 * the permission.
 */
export type Access = 'public' | 'loopback' | 'control' | 'key' | Permission

/** A success status other than the route's usual one, e.g. 202 for a send that was scheduled. */
export class Reply<T> {
  readonly status: number
  readonly value: T

  constructor(status: number, value: T) {
    this.status = status
    this.value = value
  }
}

/** What the API's description needs of a route; what is at the root, or for this machine alone, is not described. */
interface Described {
  /** What a client generator calls it, e.g. `sendEmail`; unique, and as fixed as the path. */
  readonly operationId: string
  /** One that a resource declares. */
  readonly chapter: string
}

interface RouteHead<P extends TObject, Q extends TObject, B extends TSchema> extends Partial<Described> {
  readonly method: Method
  /** Below `/api/v1`, or from the root where `isAtRoot`. Parameters as `:name`. */
  readonly path: string
  readonly isAtRoot?: boolean
  readonly summary: string
  /** What the summary cannot say: rules, choices, surprises. Shown in the OpenAPI page. */
  readonly description?: string
  readonly access: Access
  readonly params?: P
  readonly query?: Q
  readonly body?: B
  /** No body at all is as one without fields: of a DELETE, say, that names things in its query. */
  readonly isBodyOptional?: boolean
  /** The request brings a file instead. */
  readonly upload?: UploadRules
  /** A request body for the OpenAPI page, where rules beyond the schema demand more than its required fields. */
  readonly example?: unknown
  /** `data` of the usual answer to that, for the OpenAPI page, where values made up field by field would contradict each other. */
  readonly exampleAnswer?: unknown
  /** Headers that every success carries. */
  readonly headers?: Readonly<Record<string, string>>
  /** Of a bare answer that is no JSON but text, e.g. `text/html`. */
  readonly mediaType?: string
  /** The answer is always the same, and is made once. */
  readonly isFixed?: boolean
  /** Of a route that needs no key: an address over its limit is refused. Elsewhere its requests are counted and never refused. */
  readonly isLimited?: boolean
  /** Largest request body, octets. */
  readonly bodyLimit?: number
  /** Values (fields, entries) of a body that lists many things, each of which may then hold what other bodies may. */
  readonly bodyValues?: number
  /** Every POST with a key accepts an Idempotency-Key (`idempotency.ts`); this one requires it. */
  readonly requiresIdempotencyKey?: true
  /**
   * The handler stores its success with `keepAnswer`, in the transaction that does the work, whenever the request has a claim. Without it
   * `app.ts` reserves the key before the handler runs and stores the answer afterwards.
   */
  readonly keepsAnswer?: true
  /** A POST that changes nothing: a repeat is executed again, and its answer is not stored. */
  readonly isReadOnly?: true
  /** The answer shows a secret: stored for repeats, it is sealed. */
  readonly answerHasSecret?: true
  /** Where a 201 leads, below `/api/v1`, if that is not the path up to its first parameter with the `id` of the answer. */
  readonly location?: (value: never, params: never) => string
  /** Answers are `Tagged`; a GET answers 304 to If-None-Match. */
  readonly hasEtag?: true
  /** The handler checks `precondition`, which is what If-Match says. */
  readonly checksEtag?: true
  /** Error codes besides those every route can answer. */
  readonly errors?: readonly ErrorCode[]
}

export interface Request<P extends TObject, Q extends TObject, B extends TSchema> {
  readonly params: Static<P>
  readonly query: Static<Q>
  readonly body: Static<B>
  readonly requestId: string
  /** IP address of the client, without IPv4-mapping; behind a reverse proxy the proxy's. */
  readonly peer: string
  /** A header field; empty where there is none. */
  readonly header: (name: string) => string
}

/** A request whose key was found valid and permitted. */
export interface KeyedRequest<P extends TObject, Q extends TObject, B extends TSchema> extends Request<
  P,
  Q,
  B
> {
  readonly principal: Principal
  /** Of a request with an Idempotency-Key. */
  readonly claim: IdempotencyClaim | undefined
  /** Of a request with If-Match, on a route with `checksEtag`. The handler checks it in the transaction that makes the change. */
  readonly precondition?: Precondition
  /** On a route that takes one. */
  readonly upload?: Upload
}

interface SingleRoute<
  P extends TObject,
  Q extends TObject,
  B extends TSchema,
  R extends TSchema,
  O extends TSchema,
  Req,
> extends RouteHead<P, Q, B> {
  /** Schema of `data` in the answer. */
  readonly response: R
  /** Usual success status, default 200. */
  readonly status?: number
  /** Other success statuses that the handler may choose with `Reply`, and what `data` is then. */
  readonly otherAnswers?: Readonly<Record<number, O>>
  handle(request: Req): Promise<Static<R> | Reply<Static<R> | Static<O>> | Tagged<Static<R>>>
}

interface ListRoute<P extends TObject, Q extends TObject, R extends TSchema> extends RouteHead<
  P,
  Q,
  TSchema
> {
  /** Schema of one entry of `data`. */
  readonly item: R
  handle(request: KeyedRequest<P, Q, TSchema>, page: Page): Promise<Listing<Static<R>>>
}

/** A declared route, its schemas compiled. */
export interface Route {
  readonly head: RouteHead<TObject, TObject, TSchema>
  readonly response: { readonly kind: 'single' | 'list' | 'bare' | 'download'; readonly schema: TSchema }
  readonly status: number
  readonly otherAnswers: Readonly<Record<number, TSchema>>
  validateParams(value: unknown): unknown
  validateQuery(value: unknown): unknown
  validateBody: ((value: unknown) => unknown) | undefined
  /** The same for a body that takes long to walk over. */
  validateLargeBody: ((value: unknown, loop: LoopShare) => Promise<unknown>) | undefined
  /** @returns as `value` `data` of the answer; of a list or a bare answer all of it */
  handle(
    request: KeyedRequest<TObject, TObject, TSchema>,
  ): Promise<{ status: number; value: unknown; etag?: string }>
}

const NoFields = Type.Object({}, { additionalProperties: false })

/** Octets of bodies that are small by nature; sends declare their own bound. */
const USUAL_BODY_LIMIT = 256 * 1_024

export function bodyBounds({
  bodyLimit,
  bodyValues,
}: Pick<Route['head'], 'bodyLimit' | 'bodyValues'>): BodyBounds {
  const octets = bodyLimit ?? USUAL_BODY_LIMIT
  if (bodyValues === undefined) return { octets, values: SMALL_BODY_VALUES }
  return { octets, values: bodyValues, entryValues: SMALL_BODY_VALUES }
}

/** Whether an Idempotency-Key is accepted: on every POST with a key. */
export function acceptsIdempotencyKey({ method, access }: Pick<Route['head'], 'method' | 'access'>): boolean {
  return method === 'POST' && access !== 'public' && access !== 'loopback' && access !== 'control'
}

/** A route answering `{data: ...}` to a key. */
export function route<
  R extends TSchema,
  P extends TObject = typeof NoFields,
  Q extends TObject = typeof NoFields,
  B extends TSchema = typeof NoFields,
  O extends TSchema = R,
>(
  spec: SingleRoute<P, Q, B, R, O, KeyedRequest<P, Q, B>> &
    Described & { readonly access: Permission | 'key' },
): Route {
  return declare(spec, 'single', spec.response, request => spec.handle(request), spec)
}

/** A route that takes a file and answers `{data: ...}` to a key. */
export function uploadRoute<R extends TSchema, Q extends TObject = typeof NoFields>(
  spec: Omit<SingleRoute<typeof NoFields, Q, TSchema, R, R, unknown>, 'handle' | 'body'> &
    Described & {
      readonly access: Permission
      readonly upload: UploadRules
      handle(request: KeyedRequest<typeof NoFields, Q, TSchema>, upload: Upload): Promise<Static<R>>
    },
): Route {
  return declare(
    spec,
    'single',
    spec.response,
    request => {
      if (!request.upload) throw new Error(`${spec.path} was given no file`)
      return spec.handle(request, request.upload)
    },
    spec,
  )
}

/** A route that answers a file, made while it is sent. */
export function downloadRoute<P extends TObject = typeof NoFields, Q extends TObject = typeof NoFields>(
  spec: RouteHead<P, Q, TSchema> &
    Described & {
      readonly access: Permission
      readonly mediaType: string
      /** For the OpenAPI page. */
      readonly exampleAnswer: string
      handle(request: KeyedRequest<P, Q, TSchema>): Promise<Download>
    },
): Route {
  return declare(spec, 'download', Type.String(), request => spec.handle(request))
}

/** A route that needs no key. `isBare` answers the value itself, without `data` around it. */
export function openRoute<
  R extends TSchema,
  P extends TObject = typeof NoFields,
  Q extends TObject = typeof NoFields,
  B extends TSchema = typeof NoFields,
>(
  spec: SingleRoute<P, Q, B, R, R, Request<P, Q, B>> &
    (
      | ({ readonly access: 'public' } & (Described | { readonly isAtRoot: true }))
      | { readonly access: 'loopback'; readonly method: 'GET' }
      | { readonly access: 'control' }
    ) & {
      readonly isBare?: boolean
    },
): Route {
  return declare(
    spec,
    spec.isBare ? 'bare' : 'single',
    spec.response,
    request => spec.handle(request as never),
    spec,
  )
}

/** A route answering a page of a list; its query schema includes `pageQuery`, or `cursorQuery` where the list also pages by cursor. */
export function listRoute<
  R extends TSchema,
  P extends TObject = typeof NoFields,
  Q extends TObject = typeof NoFields,
>(spec: ListRoute<P, Q, R> & Described): Route {
  return declare(spec, 'list', spec.item, async request => {
    const scope = takesCursor(spec.query) ? scopeOf(spec.path, request) : undefined
    const page = scope === undefined ? pageOf(request.query) : cursorPageOf(request.query, scope)
    return listBody(await spec.handle(request, page), page, scope)
  })
}

/** Which list it is, and all that its rows and their order depend on. */
function scopeOf(
  path: string,
  { principal, params, query }: KeyedRequest<TObject, TObject, TSchema>,
): string {
  const filters = Object.entries(query).filter(([name]) => !['limit', 'offset', 'after'].includes(name))
  return JSON.stringify([principal.workspaceId, path, params, filters.sort(([a], [b]) => (a < b ? -1 : 1))])
}

function declare(
  head: RouteHead<TObject, TObject, TSchema>,
  kind: Route['response']['kind'],
  schema: TSchema,
  handle: (request: KeyedRequest<TObject, TObject, TSchema>) => Promise<unknown>,
  success: { readonly status?: number; readonly otherAnswers?: Readonly<Record<number, TSchema>> } = {},
): Route {
  const usual = success.status ?? 200
  return {
    head,
    response: { kind, schema },
    status: usual,
    otherAnswers: success.otherAnswers ?? {},
    validateParams: textValidator(head.params ?? NoFields),
    validateQuery: textValidator(head.query ?? NoFields),
    validateBody: head.body && bodyValidator(head.body),
    validateLargeBody: head.body && largeValidator(head.body, 'body'),
    async handle(request) {
      const result = await handle(request)
      if (result instanceof Tagged)
        return { status: result.status ?? usual, value: result.value, etag: result.etag }
      return result instanceof Reply
        ? { status: result.status, value: result.value }
        : { status: usual, value: result }
    },
  }
}

function bodyValidator(schema: TSchema): (value: unknown) => unknown {
  const [withoutNulls, validate] = [absentWhereNull(schema), validator(schema, 'body')]
  return value => validate(withoutNulls(value))
}
