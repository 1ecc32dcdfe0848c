/** `GET /openapi.json` and the same description as a page, `GET /docs`. Rate limited per address, because they are large. */
import Type from 'typebox'
import { openRoute, type Route } from '../route.js'
import { openApiDocument, type Edition } from './document.js'
import { docsPage, DOCS_HEADERS } from './page.js'

export function documentationRoutes(routes: readonly Route[], edition: Edition): Route[] {
  let document: object | undefined
  let page: string | undefined
  const described = () => (document ??= openApiDocument(routes, edition))
  return [
    openRoute({
      method: 'GET',
      path: '/openapi.json',
      isAtRoot: true,
      isBare: true,
      access: 'public',
      isLimited: true,
      summary: 'Get the OpenAPI 3.1 document.',
      isFixed: true,
      response: Type.Unknown(),
      handle: async () => described(),
    }),
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
      handle: async () => (page ??= docsPage(described())),
    }),
  ]
}
