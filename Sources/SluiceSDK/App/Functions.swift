import SluiceValues

/// RealmSwift's functions of an app by name: `user.functions.sum([1, 2])`.
@dynamicMemberLookup
public struct Functions: Sendable {
    /// A function that passes a `Result` to a completion handler.
    public typealias ResultFunction = @Sendable ([AnyBSON], @escaping @Sendable (Result<AnyBSON, any Error>) -> Void) -> Void
    /// A function that passes result and error separately to a completion handler.
    public typealias Function = @Sendable ([AnyBSON], @escaping @Sendable (AnyBSON?, (any Error)?) -> Void) -> Void

    let user: User

    public subscript(dynamicMember name: String) -> FunctionCallable { FunctionCallable(name: name, user: user) }

    public subscript(dynamicMember name: String) -> ResultFunction {
        let function: FunctionCallable = self[dynamicMember: name]
        return { arguments, completion in call(completion) { try await function(arguments) } }
    }

    public subscript(dynamicMember name: String) -> Function {
        let function: FunctionCallable = self[dynamicMember: name]
        return { arguments, completion in
            call({ (result: Result<AnyBSON, any Error>) in
                switch result {
                case .success(let value): completion(value, nil)
                case .failure(let error): completion(nil, error)
                }
            }) { try await function(arguments) }
        }
    }
}

/// A function of an app, for `await`.
///
/// A call sends one request. A service of the app runs the function and receives the user.
/// - Throws: `AppError`: `functionNotFound`; `functionExecutionError` with the function's own text, or if its service does not answer;
///   `executionTimeLimitExceeded`; `invalidSession` if the user is logged out.
public struct FunctionCallable: Sendable {
    let name: String
    let user: User

    public func callAsFunction(_ arguments: [AnyBSON]) async throws -> AnyBSON { try await user.callFunction(name, arguments) }

    public func callAsFunction(_ arguments: AnyBSON...) async throws -> AnyBSON { try await self(arguments) }
}

extension User {
    /// The functions of the app. Each call is a request to the server.
    public var functions: Functions { Functions(user: self) }

    fileprivate func callFunction(_ name: String, _ arguments: [AnyBSON]) async throws -> AnyBSON {
        let path = app.path + "/functions/call"
        let body: JSON = ["name": .string(name), "arguments": .array(arguments.map(\.canonical))]
        if isLoggedIn, let accessToken {
            do {
                return AnyBSON(try await app.http.send(.post, path, token: accessToken, body: body))
            } catch let error as AppError where error.httpStatusCode == 401 {
                // The token has expired. The function has not been called.
            }
        }
        return AnyBSON(try await app.http.send(.post, path, token: try await refreshAccessToken(), body: body))
    }
}
