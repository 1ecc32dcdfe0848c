/** `GET /openapi.json`, `GET /admin/openapi.json`, and the first as a page, `GET /docs`. Rate limited per address, because they are large. */
import Type from 'typebox'
import { openRoute, type Route } from '../route.js'
import { openApiDocument, type Edition } from './document.js'
import { docsPage, DOCS_HEADERS } from './page.js'

export function documentationRoutes(routes: readonly Route[], edition: Edition): Route[] {
  const rest = once(() => openApiDocument(routes, edition))
  const admin = once(() => openApiDocument(routes, { ...edition, api: 'admin', outgoing: {} }))
  const page = once(() => docsPage(rest()))
  return [
    documentRoute('/openapi.json', 'Get the OpenAPI 3.1 document.', rest),
    documentRoute('/admin/openapi.json', "Get the admin API's OpenAPI 3.1 document.", admin),
    openRoute({
      method: 'GET',
      path: '/docs',
      isAtRoot: true,
      isBare: true,
      access: 'public',
      isLimited: true,
      summary: 'Get the API reference page.',
      mediaType: 'text/html',
      isFixed: true,
      headers: DOCS_HEADERS,
      response: Type.String(),
      handle: async () => page(),
    }),
  ]
}

function documentRoute(path: string, summary: string, document: () => object): Route {
  return openRoute({
    method: 'GET',
    path,
    isAtRoot: true,
    isBare: true,
    access: 'public',
    isLimited: true,
    summary,
    isFixed: true,
    response: Type.Unknown(),
    handle: async () => document(),
  })
}

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined
  return () => (made ??= { value: make() }).value
}
