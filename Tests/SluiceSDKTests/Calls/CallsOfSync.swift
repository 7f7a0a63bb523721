import Foundation
import SluiceSDK

// The calls that RealmSwift has for apps, users and subscriptions, each overload once. That they compile is the contract.

@MainActor func callsOfApps() async throws {
    let app = App(id: "x")
    _ = App(id: "x", configuration: AppConfiguration(baseURL: "http://x"))
    var configuration = AppConfiguration(baseURL: "http://x", transport: nil)
    configuration = AppConfiguration(baseURL: nil, transport: nil, localAppName: "a", localAppVersion: "b")
    configuration = AppConfiguration(baseURL: "x", transport: nil, defaultRequestTimeoutMS: 3)
    configuration = AppConfiguration(
        baseURL: "x", transport: nil, defaultRequestTimeoutMS: 3, enableSessionMultiplexing: true, syncTimeouts: SyncTimeoutOptions())
    configuration = AppConfiguration(
        baseURL: "x", transport: nil, localAppName: nil, localAppVersion: nil, defaultRequestTimeoutMS: 3,
        enableSessionMultiplexing: false, syncTimeouts: nil)
    configuration.enableSessionMultiplexing = true
    let _: SyncTimeoutOptions? = configuration.syncTimeouts
    let _: (any NetworkTransport)? = configuration.transport
    configuration.baseURL = "x"
    configuration.defaultRequestTimeoutMS = 3
    let _: String = app.appId
    let _: AppConfiguration = app.configuration
    let _: String = app.baseURL
    let _: [String: User] = app.allUsers
    let _: User? = app.currentUser
    let user: User = try await app.login(credentials: .anonymous)
    app.login(credentials: Credentials.emailPassword(email: "a", password: "b")) { (result: Result<User, any Swift.Error>) in _ = result }
    let _: User = app.switch(to: user)
    app.syncManager.errorHandler = { (error: any Swift.Error, session: SyncSession?) in _ = (error, session) }
    app.syncManager.userAgent = ""
    app.syncManager.customRequestHeaders = ["a": "b"]
    let _: SyncManager = app.syncManager
    app.syncManager.authorizationHeaderName = "X-Auth"
    let timeouts = SyncTimeoutOptions(
        connectTimeout: 1, connectionLingerTime: 2, pingKeepalivePeriod: 3, pongKeepaliveTimeout: 4, fastReconnectLimit: 5)
    timeouts.connectTimeout = 2
    let _: UInt = timeouts.pingKeepalivePeriod
    app.syncManager.timeoutOptions = timeouts
    app.syncManager.logLevel = SyncLogLevel.debug
    app.syncManager.logger = { (level: SyncLogLevel, message: String) in _ = (level, message) }
    let token: AppSubscriptionToken = app.subscribe { (app: App) in _ = app.currentUser }
    token.unsubscribe()
    try await app.updateBaseUrl(to: "http://x")
    app.updateBaseUrl(to: nil) { (error: (any Swift.Error)?) in _ = error }
    let push: PushClient = app.pushClient(serviceName: "gcm")
    try await push.registerDevice(token: "", user: user)
    push.registerDevice(token: "", user: user) { error in _ = error }
    try await push.deregisterDevice(user: user)
    push.deregisterDevice(user: user) { error in _ = error }
    let auth: EmailPasswordAuth = app.emailPasswordAuth
    try await auth.confirmUser("", tokenId: "")
    auth.confirmUser("", tokenId: "") { error in _ = error }
    try await auth.resendConfirmationEmail("")
    auth.resendConfirmationEmail("") { error in _ = error }
    try await auth.retryCustomConfirmation("")
    auth.retryCustomConfirmation("") { error in _ = error }
    try await auth.sendResetPasswordEmail("")
    auth.sendResetPasswordEmail("") { error in _ = error }
    try await auth.resetPassword(to: "", token: "", tokenId: "")
    auth.resetPassword(to: "", token: "", tokenId: "") { error in _ = error }
    try await auth.callResetPasswordFunction(email: "", password: "", args: [1, "x"])
    auth.callResetPasswordFunction(email: "", password: "", args: []) { error in _ = error }
    try await app.emailPasswordAuth.registerUser(email: "", password: "")
    app.emailPasswordAuth.registerUser(email: "", password: "") { (error: (any Swift.Error)?) in _ = error }
}

@MainActor func callsOfLoggers() {
    Logger.shared = Logger { (level: LogLevel, category: any LogCategory, message: String) in _ = (level, category.rawValue, message) }
    Logger.shared = Logger(function: { level, category, message in _ = (level, category, message) })
    Logger.shared = Logger(level: .info, function: { level, category, message in _ = (level, category, message) })
    Logger.shared = Logger(level: .info, logFunction: { level, message in _ = (level, message) })
    Logger.shared = Logger(level: .all) { level, message in _ = (level, message) }
    Logger.shared.level = .warn
    Logger.setLogLevel(.detail)
    Logger.setLogLevel(.trace, for: Category.Sync.Client.session)
    let _: LogLevel = Logger.logLevel(for: Category.Storage.transaction)
    for level: LogLevel in [.off, .fatal, .error, .warn, .info, .detail, .debug, .trace, .all] { _ = level.rawValue }
}

@MainActor func callsOfFunctions(_ user: User, _ arguments: [AnyBSON]) async throws {
    let _: AnyBSON = try await user.functions.sum([1, 2])
    let _: AnyBSON = try await user.functions.sum(arguments)
    let _: AnyBSON = try await user.functions.sum(1, "x")
    user.functions.sum([1, 2]) { (sum: AnyBSON?, error: (any Swift.Error)?) in _ = (sum, error) }
    user.functions.sum(arguments) { result in
        switch result {
        case .success(let sum): _ = sum.asInt()
        case .failure(let error): _ = error
        }
    }
    let collection: MongoCollection = user.mongoClient("mongodb-atlas").database(named: "d").collection(withName: "c")
    let _: [Document] = try await collection.find(filter: ["a": 1])
    collection.find(filter: ["a": 1], options: FindOptions(2, nil, nil)) { result in
        if case .success(let found) = result { _ = found.count }
    }
    let _: AnyBSON = try await collection.insertOne(["a": 1])
    let _: Document? = try await collection.findOneDocument(filter: ["a": 1])
    let _: Int = try await collection.count(filter: [:])
    let _: UpdateResult = try await collection.updateOneDocument(filter: [:], update: [:], upsert: true)
}

@MainActor func callsOfUsers(_ app: App, _ user: User) async throws {
    let _: String = user.id
    let _: UserState = user.state
    switch user.state {
    case .loggedIn, .loggedOut, .removed: break
    @unknown default: break
    }
    let _: Bool = user.isLoggedIn
    let _: String? = user.accessToken
    let _: String? = user.refreshToken
    let _: [SyncSession] = user.allSessions
    let _: Document = user.customData
    let _: [UserIdentity] = user.identities
    let _: [(String, String)] = user.identities.map { ($0.providerType, $0.identifier) }
    let profile: UserProfile = user.profile
    let _: [String?] = [
        profile.name, profile.email, profile.pictureURL, profile.firstName, profile.lastName, profile.gender, profile.birthday,
        profile.minAge, profile.maxAge,
    ]
    let _: Document = profile.metadata
    let _: User = try await user.linkUser(credentials: .anonymous)
    user.linkUser(credentials: .anonymous) { (result: Result<User, any Swift.Error>) in _ = result }
    let news: UserSubscriptionToken = user.subscribe { (user: User) in _ = user.state }
    news.unsubscribe()
    let _: UserCompletionBlock = { user, error in _ = (user, error) }
    let _: Document = try await user.refreshCustomData()
    user.refreshCustomData { (result: Result<[AnyHashable: Any], any Swift.Error>) in _ = result }
    let key: UserAPIKey = try await user.apiKeysAuth.createAPIKey(named: "a")
    let _: (ObjectId, String, String?, Bool) = (key.objectId, key.name, key.key, key.disabled)
    let _: [UserAPIKey] = try await user.apiKeysAuth.fetchAPIKeys()
    let _: UserAPIKey = try await user.apiKeysAuth.fetchAPIKey(key.objectId)
    try await user.apiKeysAuth.enableAPIKey(key.objectId)
    try await user.apiKeysAuth.disableAPIKey(key.objectId)
    try await user.apiKeysAuth.deleteAPIKey(key.objectId)
    user.apiKeysAuth.createAPIKey(named: "a") { (key: UserAPIKey?, error: (any Swift.Error)?) in _ = (key, error) }
    user.apiKeysAuth.fetchAPIKey(key.objectId) { (key: UserAPIKey?, error: (any Swift.Error)?) in _ = (key, error) }
    user.apiKeysAuth.fetchAPIKeys { (keys: [UserAPIKey]?, error: (any Swift.Error)?) in _ = (keys, error) }
    user.apiKeysAuth.deleteAPIKey(key.objectId) { (error: (any Swift.Error)?) in _ = error }
    user.apiKeysAuth.enableAPIKey(key.objectId) { error in _ = error }
    user.apiKeysAuth.disableAPIKey(key.objectId) { error in _ = error }
    try await user.logOut()
    user.logOut { (error: (any Swift.Error)?) in _ = error }
    try await user.remove()
    user.remove { error in _ = error }
    try await user.delete()
    user.delete { error in _ = error }
    let _: Bool = user == app.currentUser
}

@MainActor func callsOfSyncConfigurations(_ user: User) {
    var flex = user.flexibleSyncConfiguration()
    flex = user.flexibleSyncConfiguration(cancelAsyncOpenOnNonFatalErrors: true)
    flex = user.flexibleSyncConfiguration(
        initialSubscriptions: { (set: SyncSubscriptionSet) in set.append(QuerySubscription<Fellow>()) }, rerunOnOpen: true)
    flex = user.flexibleSyncConfiguration(
        clientResetMode: .recoverUnsyncedChanges(), cancelAsyncOpenOnNonFatalErrors: true, initialSubscriptions: { _ in },
        rerunOnOpen: false)
    flex = user.flexibleSyncConfiguration(clientResetMode: .manual(errorHandler: { error, session in _ = (error, session) }))
    flex = user.flexibleSyncConfiguration(clientResetMode: .manual())
    flex = user.flexibleSyncConfiguration(
        clientResetMode: .discardUnsyncedChanges(
            beforeReset: { (before: Realm) in _ = before }, afterReset: { (before: Realm, after: Realm) in _ = (before, after) }))
    flex = user.flexibleSyncConfiguration(clientResetMode: .recoverOrDiscardUnsyncedChanges(beforeReset: nil, afterReset: nil))
    flex = user.flexibleSyncConfiguration(clientResetMode: .recoverUnsyncedChanges(beforeReset: nil, afterReset: { _, _ in }))
    if let sync = flex.syncConfiguration {
        let _: User = sync.user
        let _: AnyBSON? = sync.partitionValue
        let _: ClientResetMode = sync.clientResetMode
        let _: Bool = sync.cancelAsyncOpenOnNonFatalErrors
    }
    flex.objectTypes = [Fellow.self]
}

@MainActor func callsOfSessions(_ realm: Realm) async throws {
    if let session: SyncSession = realm.syncSession {
        session.suspend()
        session.resume()
        session.reconnect()
        let _: SyncSession.State = session.state
        switch session.state {
        case .active, .inactive, .invalid: break;
        @unknown default: break
        }
        switch session.connectionState {
        case .connected, .connecting, .disconnected: break;
        @unknown default: break
        }
        let _: SyncSession.ConnectionState = session.connectionState
        let _: User? = session.parentUser()
        let _: SyncConfiguration? = session.configuration()
        let token: SyncSession.ProgressNotificationToken? = session.addProgressNotification(for: .download, mode: .reportIndefinitely) {
            (p: SyncSession.Progress) in
            let _: Double = p.progressEstimate
            let _: Bool = p.isTransferComplete
            let _: (Int, Int) = (p.transferredBytes, p.transferrableBytes)
        }
        token?.invalidate()
        let _: NotificationToken? = token
        _ = session.addProgressNotification(for: .upload, mode: .forCurrentlyOutstandingWork) { _ in }
        let _: SyncSession.ProgressDirection = .upload
        let _: SyncSession.ProgressMode = .reportIndefinitely
        try await session.wait(for: .download)
        session.wait(for: .upload) { (error: (any Swift.Error)?) in _ = error }
    }
}

@MainActor func callsThatWaitForSubscriptions(_ realm: Realm, _ subs: SyncSubscriptionSet) async throws {
    try await subs.update { subs.append(QuerySubscription<Fellow>(name: "x") { $0.age > 3 }) }
    let _: Results<Fellow> = try await realm.objects(Fellow.self).where { $0.age > 3 }.subscribe()
    let _: Results<Fellow> = try await realm.objects(Fellow.self).subscribe(name: "x", waitForSync: .onCreation, timeout: 3)
    try await realm.objects(Fellow.self).subscribe(name: "x", waitForSync: .always)
    try await realm.objects(Fellow.self).subscribe(waitForSync: .never)
}

@MainActor func callsOfSubscriptions(_ realm: Realm, _ subs: SyncSubscriptionSet) {
    subs.update({ subs.removeAll() }, onComplete: { error in _ = error })
    subs.update { subs.removeAll() }
    subs.update({
        subs.append(
            QuerySubscription<Fellow>(name: "a", where: "age > %@", 3), QuerySubscription<Fellow>(where: NSPredicate(format: "age > 3")))
        subs.append(QuerySubscription<Fellow>(query: { $0.age > 3 }))
        subs.append(QuerySubscription<Fellow>(name: "a"))
        subs.remove(named: "x")
        subs.remove(ofType: Fellow.self) { $0.age > 3 }
        subs.remove(ofType: Fellow.self, { $0.age > 3 })
        subs.remove(ofType: Fellow.self, where: "age > %@", 3)
        subs.remove(ofType: Fellow.self, where: NSPredicate(format: "age > 3"))
        subs.removeAll(ofType: Fellow.self)
        subs.removeAll(unnamedOnly: true)
        subs.removeAll()
        if let one = subs.first(named: "x") {
            subs.remove(one, one)
            one.updateQuery(toType: Fellow.self) { $0.age > 4 }
            one.updateQuery(toType: Fellow.self)
            one.updateQuery(toType: Fellow.self, where: { $0.age > 4 })
            one.updateQuery(toType: Fellow.self, where: nil)
            one.updateQuery(to: "age > %@", 4)
            one.updateQuery(to: NSPredicate(format: "age > 4"))
            let _: String? = one.name
            let _: Date = one.createdAt
            let _: Date = one.updatedAt
        }
    })
    let _: SyncSubscription? = subs.first(ofType: Fellow.self) { $0.age > 3 }
    let _: SyncSubscription? = subs.first(ofType: Fellow.self, where: { $0.age > 3 })
    let _: SyncSubscription? = subs.first(ofType: Fellow.self, where: "age > %@", 3)
    let _: SyncSubscription? = subs.first(ofType: Fellow.self, where: NSPredicate(format: "age > 3"))
    let _: SyncSubscription? = subs.first
    let _: SyncSubscription? = subs.last
    let _: SyncSubscription? = subs[0]
    let _: Int = subs.count
    switch subs.state {
    case .complete: break
    case .error(let error): let _: any Swift.Error = error
    case .pending: break
    case .superseded: break
    }
    let _: SyncSubscriptionState = subs.state
    let _: Bool = subs.state == .complete
    for s in subs { let _: SyncSubscription? = s }
    let _: WaitForSyncMode = .onCreation
    realm.objects(Fellow.self).unsubscribe()
}

@MainActor func callsOfDocuments() {
    let document: Document = ["a": 1, "b": "x", "c": [1, 2], "d": nil, "e": true, "f": 1.5, "g": ["x": .null]]
    let _: AnyBSON?? = document["a"]
    let bson: AnyBSON = .int64(3)
    switch bson {
    case .double, .string, .document, .array, .binary, .objectId, .bool, .datetime, .null, .int32, .int64, .decimal128, .uuid, .regex,
        .timestamp, .minKey, .maxKey:
        break
    }
    let _: Int? = bson.int32Value.map { Int($0) }
    let _: Int64? = bson.int64Value
    let _: Int? = bson.asInt()
    let _: Int32? = bson.asInt32()
    let _: Int64? = bson.asInt64()
    let _: Double? = bson.asDouble()
    let _: Decimal128? = bson.asDecimal128()
    let _: String? = bson.stringValue
    let _: ObjectId? = bson.objectIdValue
    let _: Bool? = bson.boolValue
    let _: Double? = bson.doubleValue
    let _: Date? = bson.dateValue
    let _: Data? = bson.binaryValue
    _ = [Credentials.jwt(token: ""), .function(payload: ["a": 1]), .userAPIKey(""), .serverAPIKey("")]
    _ = [Credentials.facebook(accessToken: ""), .google(serverAuthCode: ""), .googleId(token: ""), .apple(idToken: "")]
    let _: NSRegularExpression? = bson.regexValue
    let _: Date? = bson.timestampValue
    let _: [AnyBSON] = [AnyBSON(MinKey()), AnyBSON(MaxKey()), AnyBSON(NSNull())]
    let _: UUID? = bson.uuidValue
    let _: [AnyBSON?]? = bson.arrayValue
    let _: Document? = bson.documentValue
    let _: Bool = bson.isNull
    let _: Decimal128? = bson.decimal128Value
    let _: AnyBSON = AnyBSON(3)
    let _: AnyBSON? = AnyBSON("x")
    let _: String? = bson.value()
    let _: Int? = document["a"]??.asInt()
    let _: AnyBSON = 3
    let _: AnyBSON = "x"
    let _: AnyBSON = 1.5
    let _: AnyBSON = true
    let _: AnyBSON = [1, 2]
    let _: AnyBSON = ["a": 1]
    let _: any BSON = 3
    _ = [bson: 1]
}
