/** `GET /openapi.json`, the description for programs, and `GET /docs`, which shows the same to people. Both stand at the root. They
 * are long, so that an address gets them no oftener than it may ask without a key. */
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
      summary: 'This description of the API (OpenAPI 3.1).',
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
      summary: 'This description of the API as a page for people.',
      mediaType: 'text/html',
      isFixed: true,
      headers: DOCS_HEADERS,
      response: Type.String(),
      handle: async () => (page ??= docsPage(described())),
    }),
  ]
}
