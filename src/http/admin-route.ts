/**
 * Declares routes of the admin API, for operators only; otherwise as `route.ts` declares those of the REST API.
 *
 * The gate has checked the permission, except for the scope `record`: there the handler calls `requirePermission` with the record's workspace.
 */
import type { Static, TObject, TSchema } from 'typebox'
import Type from 'typebox'
import type { Download } from './answer/download.js'
import { EVENT_STREAM, type EventStream } from './answer/event-stream.js'
import type { Upload, UploadRules } from './body/upload.js'
import {
  declare,
  declareList,
  fileOf,
  type AdminAccess,
  type AdminRequest,
  type Described,
  type KeyedRequest,
  type ListRoute,
  type NoFields,
  type Reply,
  type Route,
  type RouteHead,
  type SingleRoute,
} from './route.js'

type Operated = Described & { readonly access: AdminAccess }

/** A route of the admin API that answers `{data: ...}`. */
export function adminRoute<
  R extends TSchema,
  P extends TObject = typeof NoFields,
  Q extends TObject = typeof NoFields,
  B extends TSchema = typeof NoFields,
  O extends TSchema = R,
>(spec: SingleRoute<P, Q, B, R, O, AdminRequest<P, Q, B>> & Operated): Route {
  const head = { ...spec, api: 'admin' as const }
  return declare(head, 'single', spec.response, request => spec.handle(asOperator(request)), spec)
}

/** A route of the admin API that returns a page of a list; its query is that of `listRoute`. */
export function adminListRoute<
  R extends TSchema,
  P extends TObject = typeof NoFields,
  Q extends TObject = typeof NoFields,
>(spec: ListRoute<P, Q, R, AdminRequest<P, Q, TSchema>> & Operated): Route {
  return declareList({
    ...spec,
    api: 'admin',
    handle: (request, page) => spec.handle(asOperator(request), page),
  })
}

/** A route of the admin API that receives a file. */
export function adminUploadRoute<R extends TSchema, Q extends TObject = typeof NoFields>(
  spec: Omit<SingleRoute<typeof NoFields, Q, TSchema, R, R, unknown>, 'handle' | 'body'> &
    Operated & {
      readonly upload: UploadRules
      handle(request: AdminRequest<typeof NoFields, Q, TSchema>, upload: Upload): Promise<Static<R>>
    },
): Route {
  const head = { ...spec, api: 'admin' as const }
  return declare(
    head,
    'single',
    spec.response,
    request => spec.handle(asOperator(request), fileOf(request)),
    spec,
  )
}

/** A route of the admin API that streams a file. */
export function adminDownloadRoute<P extends TObject = typeof NoFields, Q extends TObject = typeof NoFields>(
  spec: RouteHead<P, Q, TSchema> &
    Operated & {
      readonly mediaType: string
      handle(request: AdminRequest<P, Q, TSchema>): Promise<Download>
    } & ({ readonly exampleAnswer: string } | { readonly fileSchema: TSchema }),
): Route {
  const head = { ...spec, api: 'admin' as const }
  return declare(head, 'download', spec.fileSchema ?? Type.String(), request =>
    spec.handle(asOperator(request)),
  )
}

/** A route of the admin API that answers a stream of server-sent events. */
export function adminEventsRoute<P extends TObject = typeof NoFields, Q extends TObject = typeof NoFields>(
  spec: RouteHead<P, Q, TSchema> &
    Operated & {
      /** For the OpenAPI description. */
      readonly exampleAnswer: string
      handle(request: AdminRequest<P, Q, TSchema>): Promise<EventStream>
    },
): Route {
  const head = { ...spec, api: 'admin' as const, mediaType: EVENT_STREAM }
  return declare(head, 'events', Type.String(), request => spec.handle(asOperator(request)))
}

/** A route of the admin API that answers a text of its own media type, e.g. a page. */
export function adminPageRoute<P extends TObject = typeof NoFields, Q extends TObject = typeof NoFields>(
  spec: RouteHead<P, Q, TSchema> &
    Operated & {
      readonly mediaType: string
      /** For the OpenAPI description. */
      readonly exampleAnswer: string
      handle(request: AdminRequest<P, Q, TSchema>): Promise<Reply<string>>
    },
): Route {
  const head = { ...spec, api: 'admin' as const }
  return declare(head, 'bare', Type.String(), request => spec.handle(asOperator(request)))
}

/** @throws Error: a programming error */
function asOperator<P extends TObject, Q extends TObject, B extends TSchema>(
  request: KeyedRequest<P, Q, B>,
): AdminRequest<P, Q, B> {
  const { operator, workspaceId } = request
  if (!operator) throw new Error('an admin route was called without an operator')
  return { ...request, operator, workspaceId }
}
