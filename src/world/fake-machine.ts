/** A machine that tests describe; what they leave out it does not tell. */
import type { Account, Machine, PortHolder } from './machine.js'

export interface FakeMachineFacts {
  readonly addresses?: readonly string[]
  /** Source addresses by family. */
  readonly sources?: readonly string[]
  readonly holders?: Readonly<Record<number, readonly PortHolder[]>>
  readonly userId?: number
  readonly accounts?: readonly Account[]
  /** By unit name. */
  readonly units?: Readonly<Record<string, Readonly<Record<string, string>>>>
  /** Paths readable through an access control list. */
  readonly opened?: readonly string[]
}

export function fakeMachine(facts: FakeMachineFacts): Machine {
  const { accounts = [], sources = [], opened } = facts
  return {
    addresses: () => facts.addresses,
    sourceFor: async destination => sources.find(one => one.includes(':') === destination.includes(':')),
    portHolders: async port => facts.holders?.[port] ?? [],
    userId: () => facts.userId,
    account: user => accounts.find(({ name, uid }) => name === user || uid === user),
    mayAccess: async (_, path) => opened?.includes(path),
    unitSettings(unit) {
      const settings = facts.units?.[unit]
      return settings && new Map(Object.entries(settings))
    },
  }
}
