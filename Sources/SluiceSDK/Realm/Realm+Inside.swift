package import SluiceCore
package import SluiceReplica

/// The replica under a Realm, for those inside of the package who look deeper than apps do.
package func _replica(of realm: Realm) -> Replica { realm.core.replica }

/// The query text that a subscription sends.
package func _subscriptionText<T: Object>(_ subscription: QuerySubscription<T>) -> String { subscription.text }

/// What an error of the product is to an app.
package func _syncError(_ error: SluiceError) -> SyncError { SyncError(error) }
