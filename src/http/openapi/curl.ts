/** Renders an operation as a curl command. Pure. */
import type { Operation } from './described.js'

/** @param base without trailing slash @returns reads the key from the environment, which keeps it out of the shell history */
export function curlOf(base: string, method: string, path: string, operation: Operation): string {
  const { parameters, security, requestBody } = operation
  const filled = parameters
    .filter(one => one.in === 'path')
    .reduce((text, { name, example }) => text.replace(`{${name}}`, encodeURIComponent(String(example))), path)
  const demanded = parameters.filter(one => one.required && one.in !== 'path')
  const query = demanded
    .filter(one => one.in === 'query')
    .map(
      ({ name, example }) => `${name}=${encodeURIComponent(typeof example === 'string' ? example : 'VALUE')}`,
    )
  const body = bodyOf(requestBody?.content ?? {})
  const verb = method.toUpperCase()
  return [
    `curl${verb === (body.length === 0 ? 'GET' : 'POST') ? '' : ` -X ${verb}`} ` +
      quoted(base + filled + (query.length > 0 ? `?${query.join('&')}` : '')),
    ...(security.length > 0 ? ['-H "Authorization: Bearer $POSTROAD_KEY"'] : []),
    ...demanded
      .filter(one => one.in === 'header')
      .map(({ name }) => `-H ${quoted(`${name}: any-unique-value`)}`),
    ...body,
  ].join(' \\\n  ')
}

function bodyOf(content: NonNullable<Operation['requestBody']>['content']): string[] {
  const [type, { example } = {}] = Object.entries(content)[0] ?? []
  if (type === undefined || example === undefined) return []
  return [
    `-H ${quoted(`Content-Type: ${type}`)}`,
    typeof example === 'string'
      ? `--data-binary ${quoted(example)}`
      : `-d ${quoted(JSON.stringify(example, null, 2))}`,
  ]
}

/** POSIX shell, "Single-Quotes": everything but the quote itself is literal. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
