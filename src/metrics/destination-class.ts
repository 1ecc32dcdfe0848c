/**
 * Groups recipient domains for metrics: large providers by name, all others as `other`, which bounds the number of series.
 *
 * Looks at the recipient domain only and never at DNS, so a company hosted by a large provider counts as `other`. Pure.
 */

const DOMAINS = {
  google: ['gmail.com', 'googlemail.com'],
  microsoft: [
    'outlook.com',
    'outlook.de',
    'outlook.es',
    'outlook.fr',
    'hotmail.com',
    'hotmail.co.uk',
    'hotmail.de',
    'hotmail.es',
    'hotmail.fr',
    'hotmail.it',
    'live.com',
    'live.co.uk',
    'live.de',
    'live.fr',
    'live.nl',
    'msn.com',
  ],
  yahoo: [
    'yahoo.com',
    'yahoo.co.in',
    'yahoo.co.uk',
    'yahoo.com.br',
    'yahoo.de',
    'yahoo.es',
    'yahoo.fr',
    'yahoo.it',
    'ymail.com',
    'rocketmail.com',
    'aol.com',
  ],
  apple: ['icloud.com', 'me.com', 'mac.com'],
  united_internet: ['gmx.at', 'gmx.ch', 'gmx.com', 'gmx.de', 'gmx.net', 'mail.com', 'web.de'],
  telekom: ['t-online.de', 'magenta.de'],
  proton: ['proton.me', 'protonmail.com', 'pm.me'],
  comcast: ['comcast.net'],
  orange: ['orange.fr', 'wanadoo.fr'],
  free: ['free.fr'],
  laposte: ['laposte.net'],
  libero: ['libero.it'],
  mail_ru: ['mail.ru', 'bk.ru', 'inbox.ru', 'list.ru'],
  yandex: ['yandex.ru', 'yandex.com', 'ya.ru'],
  qq: ['qq.com', 'foxmail.com'],
  netease: ['163.com', '126.com'],
} as const satisfies Readonly<Record<string, readonly string[]>>

export type DestinationClass = keyof typeof DOMAINS | 'other'

const CLASSES = new Map<string, DestinationClass>(
  (Object.keys(DOMAINS) as (keyof typeof DOMAINS)[]).flatMap(name =>
    DOMAINS[name].map(domain => [domain, name] as const),
  ),
)

/** All domains of named providers, for the queue's count by domain. */
export const NAMED_DOMAINS: readonly string[] = [...CLASSES.keys()]

/** @param domain as A-labels, lower case */
export function classOf(domain: string): DestinationClass {
  return CLASSES.get(domain) ?? 'other'
}
