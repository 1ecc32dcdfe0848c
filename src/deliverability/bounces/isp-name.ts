/**
 * Names large mailbox providers by the recipient's domain or the host that rejected the mail.
 *
 * Asks no DNS, so a company's own domain is recognized only by the host name.
 */

/** First match wins; a domain includes its subdomains. */
const PROVIDERS: readonly (readonly [name: string, domains: readonly string[], hosts: readonly string[]])[] =
  [
    ['Gmail', ['gmail.com', 'googlemail.com'], ['google.com', 'googlemail.com']],
    [
      'Outlook',
      ['outlook.com', 'hotmail.com', 'live.com', 'msn.com'],
      ['outlook.com', 'hotmail.com', 'office365.us', 'outlook.de'],
    ],
    ['AOL', ['aol.com', 'aim.com'], ['aol.com']],
    ['Yahoo', ['yahoo.com', 'ymail.com', 'rocketmail.com'], ['yahoodns.net', 'yahoo.com']],
    ['Yahoo Japan', ['yahoo.co.jp'], ['yahoo.co.jp']],
    ['iCloud', ['icloud.com', 'me.com', 'mac.com'], ['icloud.com', 'apple.com']],
    ['GMX', ['gmx.net', 'gmx.de', 'gmx.com', 'gmx.at', 'gmx.ch'], ['gmx.net', 'gmx.com']],
    ['Web.de', ['web.de'], ['web.de']],
    ['T-Online', ['t-online.de', 'magenta.de'], ['t-online.de']],
    ['Comcast', ['comcast.net'], ['comcast.net']],
    ['AT&T', ['att.net', 'sbcglobal.net', 'bellsouth.net'], ['att.net', 'prodigy.net']],
    ['Orange', ['orange.fr', 'wanadoo.fr'], ['orange.fr', 'wanadoo.fr']],
    ['Free', ['free.fr'], ['free.fr']],
    ['Libero', ['libero.it'], ['libero.it']],
    ['Zoho', ['zoho.com', 'zohomail.com', 'zoho.eu'], ['zoho.com', 'zoho.eu']],
    ['Proton Mail', ['protonmail.com', 'proton.me', 'pm.me', 'protonmail.ch'], ['protonmail.ch']],
    ['Fastmail', ['fastmail.com', 'fastmail.fm'], ['messagingengine.com']],
    ['Yandex', ['yandex.ru', 'yandex.com', 'ya.ru'], ['yandex.ru', 'yandex.net']],
    ['Mail.ru', ['mail.ru', 'inbox.ru', 'bk.ru', 'list.ru'], ['mail.ru']],
    ['QQ', ['qq.com', 'foxmail.com'], ['qq.com']],
    ['NetEase', ['163.com', '126.com', 'yeah.net'], ['163.com', '126.com', 'netease.com']],
    ['Naver', ['naver.com'], ['naver.com']],
  ]

/** Providers with domains in many countries: `yahoo.fr`, `hotmail.co.uk`. */
const BY_LABEL: Readonly<Record<string, string>> = {
  yahoo: 'Yahoo',
  hotmail: 'Outlook',
  live: 'Outlook',
  outlook: 'Outlook',
}

const OF_DOMAIN = new Map(
  PROVIDERS.flatMap(([name, domains]) => domains.map(domain => [domain, name] as const)),
)
const OF_HOST = new Map(PROVIDERS.flatMap(([name, , hosts]) => hosts.map(host => [host, name] as const)))

/**
 * @param domain recipient domain, lower case
 * @param remoteMta host that rejected the mail, if known
 */
export function ispName(domain: string, remoteMta = ''): string | null {
  return (
    found(OF_DOMAIN, domain) ??
    byCountry(domain) ??
    found(OF_HOST, remoteMta.toLowerCase().replace(/\.$/, '')) ??
    null
  )
}

function found(table: ReadonlyMap<string, string>, host: string): string | undefined {
  // No name in the tables has more than three labels.
  const labels = host.split('.').slice(-3)
  for (let start = 0; start < labels.length - 1; start += 1) {
    const name = table.get(labels.slice(start).join('.'))
    if (name !== undefined) return name
  }
  return undefined
}

function byCountry(domain: string): string | undefined {
  const [, label] = /^([a-z]{1,10})\.(?:(?:com?|net)\.)?[a-z]{2}$/.exec(domain) ?? []
  return label === undefined ? undefined : BY_LABEL[label]
}
