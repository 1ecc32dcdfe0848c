/** A network of its own for a process, as if it ran on another machine, joined to this one by two cables. Needs root. */
import { execFileSync } from 'node:child_process'
import type { Test } from 'tap'

let made = 0

export interface NetNamespace {
  /** What runs a program in it. */
  readonly through: readonly string[]
  /** Address of the program, as this machine reaches it. */
  readonly address: string
  /** Addresses of this machine, as the program reaches it: over the cable that stays, and over the one that is cut. */
  readonly host: string
  readonly database: string
  /** Packets over the second cable vanish. */
  cut(): void
  mend(): void
}

export function netNamespace(t: Test): NetNamespace {
  made += 1
  const name = `pr${process.pid}-${made}`
  const ip = (...args: string[]) => execFileSync('ip', args)
  ip('netns', 'add', name)
  t.teardown(() => ip('netns', 'del', name))
  ip('-n', name, 'link', 'set', 'lo', 'up')
  const network = `10.${200 + (made % 50)}.${process.pid % 250}`
  const cable = (at: number) => {
    const [outer, inner] = [`pr${process.pid % 100_000}h${made}${at}`, `n${at}`]
    const [mine, its] = [`${network}.${at * 4 + 1}`, `${network}.${at * 4 + 2}`]
    ip('link', 'add', outer, 'type', 'veth', 'peer', 'name', inner, 'netns', name)
    ip('addr', 'add', `${mine}/30`, 'dev', outer)
    ip('link', 'set', outer, 'up')
    ip('-n', name, 'addr', 'add', `${its}/30`, 'dev', inner)
    ip('-n', name, 'link', 'set', inner, 'up')
    return { outer, mine, its }
  }
  const [stays, cut] = [cable(0), cable(1)]
  return {
    through: ['ip', 'netns', 'exec', name],
    address: stays.its,
    host: stays.mine,
    database: cut.mine,
    cut: () => void ip('link', 'set', cut.outer, 'down'),
    mend: () => void ip('link', 'set', cut.outer, 'up'),
  }
}
