/**
 * Route declarations: one object yields the validation, the handler's types and the OpenAPI description.
 *
 * Created in the `routes.ts` of resources, mounted by `app.ts`, described by `openapi/document.ts`. Handlers do not depend on Koa.
 */
import type { Static, TObject, TSchema } from 'typebox'
import Type from 'typebox'
import type { ErrorCode } from '../core/errors.js'
import { given } from '../core/given.js'
import type { Download } from './answer/download.js'
import { USUAL_VALUES } from './body/body.js'
import type { BodyBounds, BodyRule } from './body/large-bodies.js'
import type { Upload, UploadRules } from './body/upload.js'
import type { IdempotencyClaim } from './idempotency.js'
import { Tagged, type Precondition } from './preconditions.js'
import { cursorPageOf, listBody, pageOf, takesCursor, type Listing, type Page } from './pagination.js'
import type { ClientRequest } from './network-access.js'
import type { OperatorPrincipal } from './operator.js'
import type { Permission, Principal } from './principal.js'
import type { OperatorPermission } from './roles.js'
import { bodyValidator, textValidator } from './validate.js'

export const API_BASE = '/api/v1'
export const ADMIN_BASE = '/api/admin/v1'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** Which operators may call a route of the admin API. */
export interface AdminAccess {
  /** `any`: every signed-in operator, for their own account. */
  readonly permission: OperatorPermission | 'any'
  /**
   * Where the permission must be held: for the whole appliance; in the workspace of the path parameter `workspaceId`; in that of the query
   * parameter `workspace_id`, for the whole appliance without it; or in the workspace of the record, which the handler checks with
   * `requirePermission`.
   */
  readonly scope: 'appliance' | 'path' | 'query' | 'record'
  /** Requires a sign-in within the last 15 minutes. */
  readonly isSensitive?: true
}

/** For operators, and for requests that need no credential, such as those from listed networks. Others get 404. */
export interface ListedAccess extends AdminAccess {
  readonly isListed: (request: ClientRequest) => boolean
}

/**
 * Who may call: anybody, clients of the control socket, any valid key, keys with a permission, operators, or operators and listed networks.
 */
export type Access = 'public' | 'control' | 'key' | Permission | AdminAccess | ListedAccess

/** Header fields of an answer; a list repeats the field. */
export type AnswerHeaders = Readonly<Record<string, string | string[]>>

/** A success with another status than the route's default, e.g. 202 for a scheduled send, or with header fields. */
export class Reply<T> {
  readonly status: number
  readonly value: T
  readonly headers: AnswerHeaders | undefined

  constructor(status: number, value: T, headers?: AnswerHeaders) {
    this.status = status
    this.value = value
    this.headers = headers
  }
}

/** For the API description; routes at the root are not described. */
export interface Described {
  /** Name for client generators, e.g. `sendEmail`; unique and as stable as the path. */
  readonly operationId: string
  /** A chapter declared by a resource. */
  readonly chapter: string
}

/** For the OpenAPI description. */
export interface OtherFile {
  readonly mediaType: string
  /** Default: any text. */
  readonly schema?: TSchema
  /** Default: derived from the schema. */
  readonly example?: unknown
}

export interface RouteHead<
  P extends TObject,
  Q extends TObject,
  B extends TSchema,
> extends Partial<Described> {
  readonly method: Method
  /** Below `/api/v1` or, with `api`, `/api/admin/v1`, or below the root if `isAtRoot`. Parameters as `:name`. */
  readonly path: string
  /** The admin API: for operators only, and described by its own document. */
  readonly api?: 'admin'
  readonly isAtRoot?: boolean
  readonly summary: string
  /** Details that do not fit the summary. Shown in the OpenAPI description. */
  readonly description?: string
  readonly access: Access
  readonly params?: P
  readonly query?: Q
  readonly body?: B
  /** A missing body counts as an empty object. */
  readonly isBodyOptional?: boolean
  /** The request carries a file instead of JSON. */
  readonly upload?: UploadRules
  /** Example request body for the OpenAPI description, if the one derived from the schema would be rejected. */
  readonly example?: unknown
  /** Example `data` for the OpenAPI description, if values derived field by field would contradict each other. */
  readonly exampleAnswer?: unknown
  /** Headers of every success. */
  readonly headers?: Readonly<Record<string, string>>
  /** Media type of a bare answer that is not JSON, e.g. `text/html`. */
  readonly mediaType?: string
  /** Shape of a file that is JSON; default: any text. */
  readonly fileSchema?: TSchema
  /** Files of other media types that the route answers, e.g. depending on `format`. */
  readonly otherFiles?: readonly OtherFile[]
  /** The answer never changes and is built once. */
  readonly isFixed?: boolean
  /** For public routes that answer some callers in more detail: operators, and requests for which it is true. Handlers get `isKnown`. */
  readonly knows?: (request: ClientRequest) => boolean
  /** For routes without a key: enforces the limit per address. Otherwise requests are counted but never refused. */
  readonly isLimited?: boolean
  /** Maximum request body, octets. */
  readonly bodyLimit?: number
  /** Maximum values (fields, entries) of a body that is a list; each entry may then be as large as other bodies. */
  readonly bodyValues?: number
  /** Requires an Idempotency-Key, which every POST with an API key accepts (`idempotency.ts`). */
  readonly requiresIdempotencyKey?: true
  /**
   * If the request has a claim, the handler stores its success with `keepAnswer` in the same transaction as the work. Otherwise `app.ts`
   * reserves the key before the handler runs and stores the answer afterwards.
   */
  readonly keepsAnswer?: true
  /** A POST without side effects: a repeat is executed again, and its answer is not stored. */
  readonly isReadOnly?: true
  /** The answer contains a secret, so it is encrypted when stored for repeats. */
  readonly answerHasSecret?: true
  /** Location of a 201 below `/api/v1`; default: the path up to its first parameter, plus the `id` of the answer. */
  readonly location?: (value: never, params: never) => string
  /** Answers are `Tagged`; a GET answers 304 if If-None-Match matches. */
  readonly hasEtag?: true
  /** The handler checks `precondition` (If-Match). */
  readonly checksEtag?: true
  /** Error codes in addition to those of every route. */
  readonly errors?: readonly ErrorCode[]
}

export interface Request<P extends TObject, Q extends TObject, B extends TSchema> {
  readonly params: Static<P>
  readonly query: Static<Q>
  readonly body: Static<B>
  readonly requestId: string
  /** IP address of the client, behind a trusted proxy the forwarded one; never IPv4-mapped. */
  readonly peer: string
  /** Value of a header field; empty if absent. */
  readonly header: (name: string) => string
  /** On routes with `knows`: whether the answer may have details. */
  readonly isKnown?: boolean
}

/** A request authenticated by a key with the required permission. */
export interface KeyedRequest<P extends TObject, Q extends TObject, B extends TSchema> extends Request<
  P,
  Q,
  B
> {
  readonly principal: Principal
  /** Present if the request has an Idempotency-Key. */
  readonly claim: IdempotencyClaim | undefined
  /** Present with If-Match on a route with `checksEtag`. The handler checks it in the transaction of the change. */
  readonly precondition?: Precondition
  /** Present on upload routes. */
  readonly upload?: Upload
  /** Present on routes for operators, and the workspace their path or query names. */
  readonly operator?: OperatorPrincipal
  readonly workspaceId?: string
}

/** A request of an operator with the required permission. */
export interface AdminRequest<P extends TObject, Q extends TObject, B extends TSchema> extends Request<
  P,
  Q,
  B
> {
  readonly operator: OperatorPrincipal
  /** The workspace named by path or query; undefined: all. */
  readonly workspaceId: string | undefined
  /** As in `KeyedRequest`. */
  readonly precondition?: Precondition
}

export interface SingleRoute<
  P extends TObject,
  Q extends TObject,
  B extends TSchema,
  R extends TSchema,
  O extends TSchema,
  Req,
> extends RouteHead<P, Q, B> {
  /** Schema of `data` in the answer. */
  readonly response: R
  /** Default success status, 200 if absent. */
  readonly status?: number
  /** Other success statuses the handler may return with `Reply`, and the schema of their `data`. */
  readonly otherAnswers?: Readonly<Record<number, O>>
  handle(request: Req): Promise<Static<R> | Reply<Static<R> | Static<O>> | Tagged<Static<R>>>
}

export interface ListRoute<P extends TObject, Q extends TObject, R extends TSchema, Req> extends RouteHead<
  P,
  Q,
  TSchema
> {
  /** Schema of one entry of `data`. */
  readonly item: R
  handle(request: Req, page: Page): Promise<Listing<Static<R>>>
}

/** A declared route, its schemas compiled. */
export interface Route {
  readonly head: RouteHead<TObject, TObject, TSchema>
  readonly response: {
    readonly kind: 'single' | 'list' | 'bare' | 'download' | 'events'
    readonly schema: TSchema
  }
  readonly status: number
  readonly otherAnswers: Readonly<Record<number, TSchema>>
  validateParams(value: unknown): unknown
  validateQuery(value: unknown): unknown
  readonly body: BodyRule | undefined
  /** @returns as `value` the `data` of the answer, or the complete answer of a list or bare route */
  handle(
    request: KeyedRequest<TObject, TObject, TSchema>,
  ): Promise<{ status: number; value: unknown; etag?: string; headers?: AnswerHeaders }>
}

export const NoFields = Type.Object({}, { additionalProperties: false })

/** Octets; sends declare their own limit. */
const USUAL_BODY_LIMIT = 256 * 1_024

export function bodyBounds({
  bodyLimit,
  bodyValues,
}: Pick<Route['head'], 'bodyLimit' | 'bodyValues'>): BodyBounds {
  const octets = bodyLimit ?? USUAL_BODY_LIMIT
  if (bodyValues === undefined) return { octets, values: USUAL_VALUES }
  return { octets, values: bodyValues, entryValues: USUAL_VALUES }
}

/** Every POST of the REST API accepts an Idempotency-Key. */
export function acceptsIdempotencyKey({ method, access }: Pick<Route['head'], 'method' | 'access'>): boolean {
  const isOpen = access === 'public' || access === 'control'
  return method === 'POST' && !isOpen && typeof access !== 'object'
}

/** A route that answers `{data: ...}` and needs a key. */
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

/** A route that receives a file, answers `{data: ...}` and needs a key. */
export function uploadRoute<R extends TSchema, Q extends TObject = typeof NoFields>(
  spec: Omit<SingleRoute<typeof NoFields, Q, TSchema, R, R, unknown>, 'handle' | 'body'> &
    Described & {
      readonly access: Permission
      readonly upload: UploadRules
      handle(
        request: KeyedRequest<typeof NoFields, Q, TSchema>,
        upload: Upload,
      ): Promise<Static<R> | Reply<Static<R>> | Tagged<Static<R>>>
    },
): Route {
  return declare(spec, 'single', spec.response, request => spec.handle(request, fileOf(request)), spec)
}

/** A route that streams a file. */
export function downloadRoute<P extends TObject = typeof NoFields, Q extends TObject = typeof NoFields>(
  spec: RouteHead<P, Q, TSchema> &
    Described & {
      readonly access: Permission
      readonly mediaType: string
      handle(request: KeyedRequest<P, Q, TSchema>): Promise<Download>
    } & ({ readonly exampleAnswer: string } | { readonly fileSchema: TSchema }),
): Route {
  return declare(spec, 'download', spec.fileSchema ?? Type.String(), request => spec.handle(request))
}

/** A route that needs no key. With `isBare` the value is sent without a `data` wrapper. */
export function openRoute<
  R extends TSchema,
  P extends TObject = typeof NoFields,
  Q extends TObject = typeof NoFields,
  B extends TSchema = typeof NoFields,
>(
  spec: SingleRoute<P, Q, B, R, R, Request<P, Q, B>> &
    (
      | ({ readonly access: 'public'; readonly api?: 'admin' } & (Described | { readonly isAtRoot: true }))
      | { readonly access: ListedAccess; readonly method: 'GET'; readonly isAtRoot: true }
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

/** A route that returns a page of a list. Its query schema includes `cursorQuery`. */
export function listRoute<
  R extends TSchema,
  P extends TObject = typeof NoFields,
  Q extends TObject = typeof NoFields,
>(
  spec: ListRoute<P, Q, R, KeyedRequest<P, Q, TSchema>> & Described & { readonly access: Permission | 'key' },
): Route {
  return declareList(spec)
}

export function declareList<R extends TSchema, P extends TObject, Q extends TObject>(
  spec: ListRoute<P, Q, R, KeyedRequest<P, Q, TSchema>>,
): Route {
  return declare(spec, 'list', spec.item, async request => {
    const scope = takesCursor(spec.query) ? scopeOf(spec.path, request) : undefined
    const page = scope === undefined ? pageOf(request.query) : cursorPageOf(request.query, scope)
    return listBody(await spec.handle(request as never, page), page, scope)
  })
}

/** @throws Error: a programming error */
export function fileOf({ upload }: Pick<KeyedRequest<TObject, TObject, TSchema>, 'upload'>): Upload {
  if (!upload) throw new Error('an upload route was given no file')
  return upload
}

/** Identifies a list by everything that determines its rows and their order. */
function scopeOf(
  path: string,
  { principal, params, query }: KeyedRequest<TObject, TObject, TSchema>,
): string {
  const filters = Object.entries(query).filter(
    ([name]) => !['limit', 'offset', 'after', 'count'].includes(name),
  )
  return JSON.stringify([principal.workspaceId, path, params, filters.sort(([a], [b]) => (a < b ? -1 : 1))])
}

export function declare(
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
    body: head.body && { schema: head.body, validate: bodyValidator(head.body), bounds: bodyBounds(head) },
    async handle(request) {
      const result = await handle(request)
      if (result instanceof Tagged)
        return { status: result.status ?? usual, value: result.value, etag: result.etag }
      return result instanceof Reply
        ? { status: result.status, value: result.value, ...given({ headers: result.headers }) }
        : { status: usual, value: result }
    },
  }
}
