import Foundation
import SluiceSDK

// The calls that RealmSwift has for Realms and configurations, each overload once. That they compile is the contract.

@MainActor func callsOfConfigurations() throws {
    var configuration = Realm.Configuration.defaultConfiguration
    Realm.Configuration.defaultConfiguration = configuration
    configuration = Realm.Configuration(
        fileURL: URL(fileURLWithPath: "/x"), inMemoryIdentifier: nil, encryptionKey: nil, readOnly: false, schemaVersion: 1,
        migrationBlock: { migration, oldVersion in
            let _: UInt64 = oldVersion
            migration.enumerateObjects(ofType: Fellow.className()) { (old: MigrationObject?, new: MigrationObject?) in
                new!["name"] = old!["name"]
            }
            migration.enumerateObjects(ofType: "Fellow") { old, new in _ = (old, new) }
            let made = migration.create("Fellow", value: ["name": "x"])
            migration.create("Fellow")
            migration.delete(made)
            let _: Bool = migration.deleteData(forType: "Fellow")
            migration.deleteData(forType: "Fellow")
            migration.renameProperty(onType: "Fellow", from: "a", to: "b")
            let _: Schema = migration.oldSchema
            let _: Schema = migration.newSchema
        }, deleteRealmIfMigrationNeeded: true, shouldCompactOnLaunch: { total, used in total > used },
        objectTypes: [Fellow.self, Lodging.self], seedFilePath: nil)
    configuration = Realm.Configuration(inMemoryIdentifier: "x", schemaVersion: 3, objectTypes: nil)
    configuration.maximumNumberOfActiveVersions = 4
    let _: SyncConfiguration? = configuration.syncConfiguration
    let _: String = configuration.description
    let block: MigrationBlock = { _, _ in }
    configuration.migrationBlock = block
    let _: MigrationObjectEnumerateBlock = { _, _ in }
    if let types = configuration.objectTypes { let _: [ObjectBase.Type] = types }

}

@MainActor func callsThatOpen(_ configuration: Realm.Configuration) async throws {
    _ = try await Realm()
    _ = try Realm(queue: .main)
    _ = try Realm(queue: nil)
    _ = try Realm(configuration: configuration, queue: DispatchQueue(label: "x"))
    _ = try Realm(fileURL: URL(fileURLWithPath: "/x"))
    _ = try await Realm(configuration: configuration, downloadBeforeOpen: .once)
    _ = try await Realm(downloadBeforeOpen: .always)
    _ = try await Realm()
    _ = try await Realm(actor: MainActor.shared)
    _ = try await Realm(configuration: configuration, actor: MainActor.shared, downloadBeforeOpen: .never)
    let _: Realm.OpenBehavior = .never
    let task: Realm.AsyncOpenTask = Realm.asyncOpen(configuration: configuration, callbackQueue: .main) {
        (result: Result<Realm, any Swift.Error>) in
        switch result {
        case .success(let realm): _ = realm
        case .failure(let error): _ = error
        }
    }
    Realm.asyncOpen { _ = $0 }
    Realm.asyncOpen(configuration: configuration) { result in _ = try? result.get() }
    task.addProgressNotification(queue: .main) { (progress: SyncSession.Progress) in _ = progress.progressEstimate }
    task.addProgressNotification { _ in }
    task.cancel()

}

@MainActor func callsThatWrite(_ realm: Realm, _ person: Fellow) throws {
    let _: Schema = realm.schema
    let _: Realm.Configuration = realm.configuration
    let _: Bool = realm.isEmpty
    let person = Fellow()
    let token = realm.observe { (notification: Realm.Notification, realm: Realm) in
        switch notification {
        case .didChange: break
        case .refreshRequired: break
        }
        _ = notification.rawValue + ""
    }
    let watch: NotificationBlock = { _, _ in }
    _ = realm.observe(watch)
    try realm.write { realm.add(person) }
    let _: Fellow = try realm.write(withoutNotifying: [token]) { realm.create(Fellow.self) }
    realm.beginWrite()
    realm.cancelWrite()
    try realm.commitWrite()
    try realm.commitWrite(withoutNotifying: [token])
    let _: Bool = realm.isInWriteTransaction
    token.invalidate()
}

@MainActor func callsThatWriteLater(_ realm: Realm, _ person: Fellow, _ token: NotificationToken) async throws {
    let id: AsyncTransactionId = realm.writeAsync({ realm.add(person) }, onComplete: { (error: (any Swift.Error)?) in _ = error })
    realm.writeAsync { realm.add(person) }
    realm.writeAsync {
        realm.add(person)
    } onComplete: { _ in
    }
    realm.beginAsyncWrite { realm.commitAsyncWrite() }
    let _: AsyncTransactionId = realm.beginAsyncWrite { try? realm.commitWrite() }
    realm.commitAsyncWrite(allowGrouping: true) { error in _ = error }
    realm.commitAsyncWrite { _ in }
    let _: AsyncTransactionId = realm.commitAsyncWrite(allowGrouping: false, nil)
    try realm.cancelAsyncWrite(id)
    let _: Bool = realm.isPerformingAsynchronousWriteOperations
    try await realm.asyncWrite { realm.add(person) }
    let _: Int = try await realm.asyncWrite { 3 }
    let _: Bool = await realm.asyncRefresh()
    await realm.asyncRefresh()

}

@MainActor func callsThatAdd(_ realm: Realm, _ person: Fellow) {
    realm.add(person, update: .modified)
    realm.add([person], update: .all)
    realm.add([person])
    realm.add(person.friends)
    realm.add(realm.objects(Fellow.self), update: .error)
    let _: Realm.UpdatePolicy? = Realm.UpdatePolicy(rawValue: 1)
    let _: Int = Realm.UpdatePolicy.all.rawValue
    realm.create(Fellow.self, value: ["name": "a"])
    let _: Fellow = realm.create(Fellow.self, value: ["a", 3] as [Any], update: .all)
    realm.create(Fellow.self, value: person, update: .modified)
    realm.create(Ping.self, value: ["text": "x"])
    realm.create(Ping.self)
    let _: DynamicObject = realm.dynamicCreate("Fellow", value: ["name": "x"], update: .all)
    realm.dynamicCreate("Fellow")
}

@MainActor func callsThatDelete(_ realm: Realm, _ person: Fellow) {
    realm.delete(person)
    realm.delete(person.home!)
    realm.delete(person as ObjectBase)
    realm.delete([person])
    realm.delete([person.home!])
    realm.delete(person.friends)
    realm.delete(person.homes)
    realm.delete(person.friendSet)
    realm.delete(person.friendMap)
    realm.delete(person.homeMap)
    realm.delete(realm.objects(Fellow.self))
    realm.delete(realm.objects(Fellow.self).filter("age > 3"))
    realm.delete(person.befriended)
    realm.delete(AnyRealmCollection(person.friends))
    realm.delete(realm.dynamicObjects("Fellow"))
    realm.delete(Array(realm.objects(Fellow.self).prefix(3)))
    realm.deleteAll()

}

@MainActor func callsThatFind(_ realm: Realm, _ person: Fellow, _ configuration: Realm.Configuration) throws {
    let _: Results<Fellow> = realm.objects(Fellow.self)
    let _: Results<FellowView> = realm.objects(FellowView.self)
    let _: Results<DynamicObject> = realm.dynamicObjects("Fellow")
    let _: Fellow? = realm.object(ofType: Fellow.self, forPrimaryKey: ObjectId.generate())
    let _: Fellow? = realm.object(ofType: Fellow.self, forPrimaryKey: 3)
    let _: DynamicObject? = realm.dynamicObject(ofType: "Fellow", forPrimaryKey: 3)
    let _: Bool = realm.autorefresh
    realm.autorefresh = false
    let _: Bool = realm.refresh()
    realm.refresh()
    let _: Bool = realm.isFrozen
    let _: Realm = realm.freeze()
    let _: Realm = realm.thaw()
    let _: Fellow = realm.freeze(person)
    let _: Fellow? = realm.thaw(person)
    let _: Results<Fellow> = realm.freeze(realm.objects(Fellow.self))
    let _: List<Fellow> = realm.freeze(person.friends)
    realm.invalidate()
    try realm.writeCopy(toFile: URL(fileURLWithPath: "/y"))
    try realm.writeCopy(toFile: URL(fileURLWithPath: "/y"), encryptionKey: nil)
    try realm.writeCopy(configuration: configuration)
    let _: Bool = Realm.fileExists(for: configuration)
    let _: Bool = try Realm.deleteFiles(for: configuration)
    let _: SyncSubscriptionSet = realm.subscriptions
    let _: SyncSession? = realm.syncSession
    let _: Bool = realm == person.realm
    try Realm.performMigration(for: configuration)
    try Realm.performMigration()
    let _: UInt64 = try schemaVersionAtURL(URL(fileURLWithPath: "/x"))
    let _: UInt64 = try schemaVersionAtURL(URL(fileURLWithPath: "/x"), encryptionKey: nil)
    let reference = ThreadSafeReference(to: person)
    let _: Fellow? = realm.resolve(reference)
    let _: Bool = reference.isInvalidated
    let _: List<Fellow>? = realm.resolve(ThreadSafeReference(to: person.friends))
    let _: Map<String, Fellow?>? = realm.resolve(ThreadSafeReference(to: person.friendMap))
    let _: Results<Fellow>? = realm.resolve(ThreadSafeReference(to: realm.objects(Fellow.self)))
    @ThreadSafe var safe: Fellow?
    safe = person
    @ThreadSafe var friends: List<Fellow>? = person.friends
    _ = (safe, friends)
}

func callsOnErrors(_ error: any Swift.Error) {
    if let error = error as? Realm.Error {
        switch error.code {
        case .fail, .fileAccess, .filePermissionDenied, .fileExists, .fileNotFound, .incompatibleLockFile, .fileFormatUpgradeRequired,
            .addressSpaceExhausted, .schemaMismatch, .subscriptionFailed, .unsupportedFileFormatVersion, .alreadyOpen, .invalidInput,
            .outOfDiskSpace, .incompatibleSession, .multipleSyncAgents, .invalidDatabase, .fileOperationFailed, .incompatibleHistories,
            .noSubscriptionForWrite:
            break
        }
        let _: Realm.Error.Code = error.code
        let _: Int = error.code.rawValue
        let _: URL? = error.fileURL
        let _: [String: Any] = error.userInfo
        let _: Bool = error == Realm.Error.callFailed
        let _: String = error.localizedDescription
        let _: Bool = Realm.Error.fileNotFound ~= error
        let _: Int = error.errorCode
    }
    do { throw error } catch Realm.Error.fileAccess {} catch Realm.Error.schemaMismatch {} catch SyncError.clientUserError {} catch {}
}

func callsOnSyncErrors(_ error: any Swift.Error) {
    if let error = error as? SyncError {
        switch error.code {
        case .clientResetError, .clientUserError, .clientSessionError, .clientInternalError, .permissionDeniedError, .underlyingAuthError,
            .invalidFlexibleSyncSubscriptions, .writeRejected, .connectionFailed, .tlsHandshakeFailed, .serverWarning:
            break
        }
        if let (path, token): (String, SyncError.ActionToken) = error.clientResetInfo() {
            _ = path
            SyncSession.immediatelyHandleError(token)
        }
        let _: SyncError.ActionToken? = error.deleteRealmUserInfo()
        let _: [CompensatingWriteInfo]? = error.compensatingWriteInfo
        if let info = error.compensatingWriteInfo?.first {
            let _: String = info.objectType
            let _: String = info.reason
            let _: AnyRealmValue = info.primaryKey
        }
        let _: URL? = error.serverLogURL
        let _: [String: Any] = error.userInfo
    }
    if let error = error as? AppError {
        let _: AppError.Code = error.code
        let _: String = error.localizedDescription
        let _: Int? = error.httpStatusCode
    }
}
