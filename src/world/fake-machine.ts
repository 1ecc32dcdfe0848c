/** A machine that tests describe; what they leave out it does not tell. */
import type { Account, Machine, PortHolder } from './machine.js'

export interface FakeMachineFacts {
  readonly addresses?: readonly string[]
  /** What mail is sent from, by family. */
  readonly sources?: readonly string[]
  /** By port. */
  readonly holders?: Readonly<Record<number, readonly PortHolder[]>>
  readonly userId?: number
  readonly accounts?: readonly Account[]
  /** By name of the unit. */
  readonly units?: Readonly<Record<string, Readonly<Record<string, string>>>>
  /** Paths that an access control list opens. */
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
