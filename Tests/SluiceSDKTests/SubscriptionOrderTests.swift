import Foundation
import SluiceReplica
import SluiceSDK
import Testing

/// The stored order and DISTINCTs of a limit, from the results or from the options.
@MainActor @Suite struct SubscriptionOrderTests {
    let configuration: Realm.Configuration
    let realm: Realm

    init() throws {
        configuration = try TemporaryFolder().synced([Terrier.self, Walker.self, Task.self])
        realm = try Realm(configuration: configuration)
    }

    private var dogs: Results<Terrier> { realm.objects(Terrier.self) }
    private var walkers: Results<Walker> { realm.objects(Walker.self) }

    private static func text(_ sort: [SubscriptionOptions.SortKey]) -> String {
        sort.map { "\($0.isDescending ? "-" : "+")\($0.path)" }.joined(separator: " ")
    }

    /// The stored options of a subscription: each DISTINCT with its order, then the order, then the limit.
    private func stored(_ name: String) async throws -> String {
        let set = try await _replica(of: realm).latestSubscriptionSet()
        let options = try #require(set.subscriptions.first { $0.name == name }?.options)
        let parts = options.distinct.map { "\($0.paths.joined(separator: ",")) of \(Self.text($0.sort)); " }
        return "\(parts.joined())\(Self.text(options.sort)) \(options.limit)"
    }

    private func order<T: Object>(_ results: Results<T>, limit: Int = 3) async throws -> String {
        // A name is of one class.
        let name = "order of \(T.className())"
        let subscription = results.subscribe(named: name, limit: limit, update: true)
        guard case .pending = subscription.state else { return "\(subscription.state)" }
        return try await stored(name)
    }

    private func message<T: Object>(_ results: Results<T>) -> String {
        guard case .error(let error) = results.subscribe(named: "no", limit: 3).state else {
            Issue.record("the order was taken")
            return ""
        }
        return "\(error)"
    }

    @Test func `a limit counts in the order of the results, also through links, and of distinct ones`() async throws {
        #expect(try await order(dogs) == " 3")
        #expect(try await order(dogs.sorted(by: \.age, ascending: false)) == "-age 3")
        // The later sort takes precedence.
        #expect(try await order(dogs.sorted(byKeyPath: "age").sorted(byKeyPath: "name", ascending: false)) == "-name +age 3")
        #expect(try await order(dogs.sorted(byKeyPath: "age").sorted(byKeyPath: "age", ascending: false)) == "-age 3")
        #expect(try await order(walkers.sorted(byKeyPath: "favourite.age").sorted(byKeyPath: "nick")) == "+nickname +favourite.age 3")
        #expect(try await order(dogs.distinct(by: ["age"])) == "age of ;  3")
        #expect(
            try await order(walkers.sorted(byKeyPath: "favourite.name").distinct(by: ["nick", "favourite.age"]))
                == "nickname,favourite.age of +favourite.name; +favourite.name 3")
        // Each DISTINCT uses the order of the sorts before it.
        let steps = dogs.sorted(byKeyPath: "age").distinct(by: ["name"]).sorted(byKeyPath: "weight", ascending: false).distinct(by: ["good"]
        )
        #expect(try await order(steps) == "name of +age; good of -weight +age; -weight +age 3")
        // Without a limit, the subscription has all objects of the query.
        #expect(try await order(steps, limit: 0) == " 0")
    }

    @Test func `an order that the server cannot count in is an error with a limit, and none without`() async throws {
        #expect(message(dogs.sorted(byKeyPath: "chip.city")).contains("cannot count by 'chip.city'"))
        #expect(message(dogs.distinct(by: ["chip.beds"])).contains("cannot count by 'chip.beds'"))
        #expect(message(walkers.sorted(byKeyPath: "data")).contains("cannot count by 'data'"))
        #expect(message(walkers.distinct(by: ["mixed"])).contains("cannot count by 'mixed'"))
        let many = (0..<33).map { SortDescriptor(keyPath: $0 % 2 == 0 ? "age" : "name") }
        let error = await #expect(throws: Realm.Error.self) {
            _ = try await dogs.subscribe(options: SyncSubscriptionOptions(limit: 3, sort: many), waitForSync: .never)
        }
        #expect(error?.code == .subscriptionFailed && error?.message.contains("33 sort keys") == true)
        #expect(realm.subscriptions.isEmpty)
        #expect(try await order(dogs.sorted(byKeyPath: "chip.city"), limit: 0) == " 0")
        // An order in the options takes precedence.
        let options = SyncSubscriptionOptions(name: "other", limit: 3, sort: ["age"])
        try await dogs.sorted(byKeyPath: "chip.city").subscribe(options: options, waitForSync: .never)
        #expect(try await stored("other") == "+age 3")
    }

    private func append(_ options: SyncSubscriptionOptions, named name: String) {
        let set = realm.subscriptions
        set.update { try? set.append(QuerySubscription<Walker>(name: name), options: options) }
    }

    @Test func `the options' order and DISTINCT count before those of the results`() async throws {
        func subscribe(_ options: SyncSubscriptionOptions, to results: Results<Walker>) async throws -> String {
            try await results.subscribe(options: options, waitForSync: .never)
            return try await stored("n")
        }
        typealias Options = SyncSubscriptionOptions
        let results = walkers.sorted(byKeyPath: "age").distinct(by: ["awake"])
        #expect(try await subscribe(Options(name: "n", limit: 3), to: results) == "awake of +age; +age 3")
        let sorted = Options(name: "n", overwriteExisting: true, limit: 3, sort: ["favourite.name"])
        #expect(try await subscribe(sorted, to: results) == "awake of +favourite.name; +favourite.name 3")
        let distinct = Options(name: "n", overwriteExisting: true, limit: 3, distinct: ["nick", "favourite.age"])
        #expect(try await subscribe(distinct, to: results) == "nickname,favourite.age of +age; +age 3")
        let both = Options(name: "n", overwriteExisting: true, limit: 3, sort: ["age"], distinct: ["name"])
        #expect(try await subscribe(both, to: results) == "name of +age; +age 3")
        // `append` has no results to take an order from.
        append(Options(limit: 2, sort: ["age"], distinct: ["favourite.name"]), named: "set")
        #expect(try await stored("set") == "favourite.name of +age; +age 2")
        let error = await #expect(throws: Realm.Error.self) {
            _ = try await walkers.subscribe(options: Options(distinct: ["name"]), waitForSync: .never)
        }
        #expect(error?.code == .subscriptionFailed && error?.message.contains("DISTINCT without a limit") == true)
    }

    @Test func `another DISTINCT is another subscription, and the same is found again in the file`() async throws {
        let results = walkers.sorted(byKeyPath: "favourite.age").distinct(by: ["awake"])
        let options = SyncSubscriptionOptions(limit: 3)
        for _ in 0..<2 { try await results.subscribe(options: options, waitForSync: .never) }
        #expect(realm.subscriptions.count == 1)
        try await results.distinct(by: ["name"]).subscribe(options: options, waitForSync: .never)
        #expect(realm.subscriptions.count == 2)
        let again = try reopened()
        try await again.objects(Walker.self).sorted(byKeyPath: "favourite.age").distinct(by: ["awake"])
            .subscribe(options: options, waitForSync: .never)
        #expect(again.subscriptions.count == 2)
    }

    @Test func `paths that lead nowhere, or to many, end the program`() async {
        func ends(_ text: String, _ result: ExitTest.Result?) { #expect(SluiceSDKTests.message(result).contains(text)) }
        ends(
            "Cannot sort a subscription on 'Walker' by 'favourite.length': 'Terrier' has no property 'length'.",
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                try await SubscriptionOrderTests.subscribe(SyncSubscriptionOptions(limit: 1, sort: ["favourite.length"]))
            })
        ends(
            "Cannot sort a subscription on 'Walker' by 'hounds.age': 'Walker.hounds' is no link to one object.",
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                try await SubscriptionOrderTests.subscribe(SyncSubscriptionOptions(limit: 1, distinct: ["hounds.age"]))
            })
    }

    // Not in an async function: it would open the Realm by the initializer that waits.
    private func reopened() throws -> Realm { try Realm(configuration: configuration) }
    private nonisolated static func opened() throws -> Realm {
        try Realm(configuration: try TemporaryFolder().synced([Terrier.self, Walker.self]))
    }

    private nonisolated static func subscribe(_ options: SyncSubscriptionOptions) async throws {
        let realm = try opened()
        _ = try await realm.objects(Walker.self).subscribe(options: options, waitForSync: .never)
    }
}
