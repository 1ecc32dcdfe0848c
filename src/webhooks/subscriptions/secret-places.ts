export function secretPlace(id: string): string {
  return `webhook_subscriptions/secret/${id}`
}

export function formerPlace(id: string): string {
  return `webhook_subscriptions/former_secret/${id}`
}
