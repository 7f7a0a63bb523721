#if canImport(Glibc)
    import Glibc
#endif

/// The environment variables of the process.
package struct ProcessEnvironment: Sendable {
    package init() {}
    package subscript(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
}
