/// RealmSwift's client for a MongoDB service. A gateway offers its data by sync only.
/// Every call on a collection throws `AppError.notCallable`.
public struct MongoClient: Sendable {
    public let name: String
    public func database(named name: String) -> MongoDatabase { MongoDatabase(name: name) }
}

public struct MongoDatabase: Sendable {
    public let name: String
    public func collection(withName name: String) -> MongoCollection { MongoCollection(databaseName: self.name, name: name) }
}

/// Options of `MongoCollection.find`.
public final class FindOptions: Sendable {
    public let limit: Int
    public let projection: Document?
    public let sort: Document?

    public init(_ limit: Int? = nil, _ projection: Document? = nil, _ sort: Document? = nil) {
        self.limit = limit ?? 0
        self.projection = projection
        self.sort = sort
    }
}

/// The number of documents that an update found and changed.
public struct UpdateResult: Hashable, Sendable {
    public let matchedCount: Int
    public let modifiedCount: Int
    public let documentId: AnyBSON?
}

/// A collection of documents. Every call throws `AppError.notCallable`.
public struct MongoCollection: Sendable {
    public let databaseName: String
    public let name: String

    private func refuse<R>() throws -> R {
        throw AppError.notOffered(
            "Access to the collection '\(databaseName).\(name)'",
            "Open a synced Realm with a subscription to its class, and read and write there.")
    }

    public func insertOne(_ document: Document) async throws -> AnyBSON { try refuse() }
    public func insertMany(_ documents: [Document]) async throws -> [AnyBSON] { try refuse() }
    public func find(filter: Document, options: FindOptions = FindOptions()) async throws -> [Document] { try refuse() }
    public func findOneDocument(filter: Document, options: FindOptions = FindOptions()) async throws -> Document? { try refuse() }
    public func aggregate(pipeline: [Document]) async throws -> [Document] { try refuse() }
    public func count(filter: Document, limit: Int? = nil) async throws -> Int { try refuse() }
    public func deleteOneDocument(filter: Document) async throws -> Int { try refuse() }
    public func deleteManyDocuments(filter: Document) async throws -> Int { try refuse() }
    public func updateOneDocument(filter: Document, update: Document, upsert: Bool = false) async throws -> UpdateResult { try refuse() }
    public func updateManyDocuments(filter: Document, update: Document, upsert: Bool = false) async throws -> UpdateResult { try refuse() }
}

/// The same calls with completion handlers. A handler runs on no particular thread.
extension MongoCollection {
    public typealias Completion<R> = @Sendable (Result<R, any Error>) -> Void

    public func insertOne(_ document: Document, _ completion: @escaping Completion<AnyBSON>) {
        call(completion) { try await self.insertOne(document) }
    }

    public func insertMany(_ documents: [Document], _ completion: @escaping Completion<[AnyBSON]>) {
        call(completion) { try await self.insertMany(documents) }
    }

    public func find(filter: Document, options: FindOptions = FindOptions(), _ completion: @escaping Completion<[Document]>) {
        call(completion) { try await self.find(filter: filter, options: options) }
    }

    public func findOneDocument(filter: Document, options: FindOptions = FindOptions(), _ completion: @escaping Completion<Document?>) {
        call(completion) { try await self.findOneDocument(filter: filter, options: options) }
    }

    public func aggregate(pipeline: [Document], _ completion: @escaping Completion<[Document]>) {
        call(completion) { try await self.aggregate(pipeline: pipeline) }
    }

    public func count(filter: Document, limit: Int? = nil, _ completion: @escaping Completion<Int>) {
        call(completion) { try await self.count(filter: filter, limit: limit) }
    }

    public func deleteOneDocument(filter: Document, _ completion: @escaping Completion<Int>) {
        call(completion) { try await self.deleteOneDocument(filter: filter) }
    }

    public func deleteManyDocuments(filter: Document, _ completion: @escaping Completion<Int>) {
        call(completion) { try await self.deleteManyDocuments(filter: filter) }
    }

    public func updateOneDocument(
        filter: Document, update: Document, upsert: Bool = false, _ completion: @escaping Completion<UpdateResult>
    ) {
        call(completion) { try await self.updateOneDocument(filter: filter, update: update, upsert: upsert) }
    }

    public func updateManyDocuments(
        filter: Document, update: Document, upsert: Bool = false, _ completion: @escaping Completion<UpdateResult>
    ) {
        call(completion) { try await self.updateManyDocuments(filter: filter, update: update, upsert: upsert) }
    }
}

extension User {
    /// A client for a MongoDB service. A gateway has none.
    public func mongoClient(_ serviceName: String) -> MongoClient { MongoClient(name: serviceName) }
}
