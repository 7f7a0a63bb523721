package import SluiceCore
package import SluiceReplica

/// The replica of a Realm, for other targets of the package.
package func _replica(of realm: Realm) -> Replica { realm.core.replica }

/// The query text that a subscription sends.
package func _subscriptionText<T: Object>(_ subscription: QuerySubscription<T>) -> String { subscription.text }

/// The app's form of an internal error.
package func _syncError(_ error: SluiceError) -> SyncError { SyncError(error) }
