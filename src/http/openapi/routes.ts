/**
 * `GET /openapi.json`, `GET /admin/openapi.json`, and both as pages below `GET /docs`. Rate limited per address, because they are large.
 */
import Type from 'typebox'
import { openRoute, type Route } from '../route.js'
import { openApiDocument, type Edition } from './document.js'
import { PAGE_FILES, PAGE_HEADERS, type PageFile } from './page-shell.js'
import { referencePages, type ReferencePage } from './reference.js'

export function documentationRoutes(routes: readonly Route[], edition: Edition): Route[] {
  const rest = once(() => openApiDocument(routes, edition))
  const admin = once(() => openApiDocument(routes, { ...edition, api: 'admin', outgoing: {} }))
  const { version, chapters } = edition
  const { pages, searchIndex } = referencePages({ version, chapters, routes, rest, admin })
  return [
    jsonRoute('/openapi.json', 'Get the OpenAPI 3.1 document.', rest),
    jsonRoute('/admin/openapi.json', "Get the admin API's OpenAPI 3.1 document.", admin),
    jsonRoute('/docs/search.json', 'Get the search index of the API reference.', searchIndex),
    ...pages.map(pageRoute),
    ...Object.values(PAGE_FILES).map(fileRoute),
  ]
}

/** These routes need no key, and their answers never change. */
const common = { method: 'GET', isAtRoot: true, isBare: true, access: 'public', isFixed: true } as const

function jsonRoute(path: string, summary: string, value: () => unknown): Route {
  return openRoute({
    ...common,
    path,
    summary,
    isLimited: true,
    response: Type.Unknown(),
    handle: async () => value(),
  })
}

function pageRoute({ path, html }: ReferencePage): Route {
  return openRoute({
    ...common,
    path,
    summary: 'Get a page of the API reference.',
    isLimited: true,
    mediaType: 'text/html',
    headers: PAGE_HEADERS,
    response: Type.String(),
    handle: once(async () => html()),
  })
}

/** The path contains a digest of the file. */
function fileRoute({ path, mediaType, text }: PageFile): Route {
  return openRoute({
    ...common,
    path,
    summary: 'Get a file of the API reference.',
    mediaType,
    headers: { 'Cache-Control': 'public, max-age=31536000, immutable' },
    response: Type.String(),
    handle: async () => text,
  })
}

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined
  return () => (made ??= { value: make() }).value
}
