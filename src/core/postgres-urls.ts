/** Database URLs that name several servers, in libpq's notations: `postgres://a:5432,b:5432/NAME` and `?host=a,b&port=5432,5433`. Pure. */

/** libpq's names for "takes writes", which is what a node needs. */
const SESSION_KINDS = ['read-write', 'primary']
const DEFAULT_PORT = '5432'
const PARTS = /^(postgres(?:ql)?:\/\/)((?:[^@/?#]*@)?)([^/?#]*)/

/** @returns a URL with one host for each server; undefined if the text is not such a URL */
export function serverUrls(text: string): string[] | undefined {
  const [whole = '', scheme, user = '', authority = ''] = PARTS.exec(text) ?? []
  if (scheme === undefined) return undefined
  const rest = text.slice(whole.length)
  const urls: string[] = []
  for (const host of authority === '' && rest.includes('host=') ? ['localhost'] : authority.split(',')) {
    const one = `${scheme}${user}${host}${rest}`
    const found = host !== '' && URL.canParse(one) ? byQuery(new URL(one)) : undefined
    if (!found) return undefined
    urls.push(...found)
  }
  return urls
}

/** Whether the URL contains a password, before the host or in the query. */
export function hasPassword(text: string): boolean {
  const [whole = '', , user = ''] = PARTS.exec(text) ?? []
  return /:./.test(user.slice(0, -1)) || /[?&]password=./.test(text.slice(whole.length))
}

/** Hosts and ports of the query take the place of the others. */
function byQuery(url: URL): string[] | undefined {
  const query = url.searchParams
  const kind = query.get('target_session_attrs')
  if (kind !== null && !SESSION_KINDS.includes(kind)) return undefined
  if (kind !== null) query.delete('target_session_attrs')
  const hosts = query.get('host')?.split(',') ?? []
  const ports = query.get('port')?.split(',') ?? []
  if (hosts.includes('') || ports.some(port => !isPort(port))) return undefined
  if (ports.length > 1 && ports.length !== hosts.length) return undefined
  if (hosts.length < 2) return [url.href]
  return hosts.map((host, at) => {
    query.set('host', host)
    query.set('port', ports[at] ?? ports[0] ?? DEFAULT_PORT)
    return url.href
  })
}

function isPort(text: string): boolean {
  return /^\d{1,5}$/.test(text) && Number(text) > 0 && Number(text) < 65_536
}
