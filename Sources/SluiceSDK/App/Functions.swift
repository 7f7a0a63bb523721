/// RealmSwift's functions of an app by name: `user.functions.sum(1, 2)`.
/// A gateway has no functions. Every call throws `AppError.notCallable`, whose message names the alternative.
@dynamicMemberLookup
public struct Functions: Sendable {
    /// A function that passes a `Result` to a completion handler.
    public typealias ResultFunction = @Sendable ([AnyBSON], @escaping @Sendable (Result<AnyBSON, any Error>) -> Void) -> Void
    /// A function that passes result and error separately to a completion handler.
    public typealias Function = @Sendable ([AnyBSON], @escaping @Sendable (AnyBSON?, (any Error)?) -> Void) -> Void

    public subscript(dynamicMember name: String) -> FunctionCallable { FunctionCallable(name: name) }

    public subscript(dynamicMember name: String) -> ResultFunction {
        { arguments, completion in call(completion) { try await FunctionCallable(name: name)(arguments) } }
    }

    public subscript(dynamicMember name: String) -> Function {
        { arguments, completion in
            call({ (result: Result<AnyBSON, any Error>) in
                switch result {
                case .success(let value): completion(value, nil)
                case .failure(let error): completion(nil, error)
                }
            }) { try await FunctionCallable(name: name)(arguments) }
        }
    }
}

/// A function of an app, for `await`. A call throws `AppError.notCallable`.
public struct FunctionCallable: Sendable {
    let name: String

    public func callAsFunction(_ arguments: [AnyBSON]) async throws -> AnyBSON {
        throw AppError.notOffered("The function '\(name)'", "Call a service of the app's own, or write an object that it reacts to.")
    }

    public func callAsFunction(_ arguments: AnyBSON...) async throws -> AnyBSON { try await self(arguments) }
}

extension User {
    /// The functions of the app. A gateway has none.
    public var functions: Functions { Functions() }
}
