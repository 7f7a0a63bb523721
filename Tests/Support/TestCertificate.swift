/// A certificate for localhost and 127.0.0.1, which signed itself, and its key, as PEM: made for tests, and worth nothing elsewhere.
package enum TestCertificate {
    package static let certificate = """
        -----BEGIN CERTIFICATE-----
        MIIBmjCCAUGgAwIBAgIUavXLwiKHDbhFX4Mt3Gy/sEqIwdwwCgYIKoZIzj0EAwIw
        FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMTEyNTMwMVoYDzIxMjYxMDI4
        MTI1MzAxWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
        PQMBBwNCAAQQaObwpziVzxbkha7s7vOiHV29kMhDmnOmMi7ss+32Jfus9f/nTUrZ
        mh5Ey0r5QcXPF3oZoFELqPE8VYHqPS+mo28wbTAdBgNVHQ4EFgQUdjnh16YZgiQH
        Vf/C1slRiNFK4LIwHwYDVR0jBBgwFoAUdjnh16YZgiQHVf/C1slRiNFK4LIwDwYD
        VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
        zj0EAwIDRwAwRAIgTsSfkc7yx/+dGkBgi36no4JtvuMnQHm1OqQqBEJoYaQCICt9
        wYdfgOFEeZacotUcwgfIxILM3rBJR+OCExgUSH/y
        -----END CERTIFICATE-----

        """
    package static let key = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQglg+tvGjtL9dkBtf7
        m0lDD1/HdrbwM8ruV51rTWuMS0ShRANCAAQQaObwpziVzxbkha7s7vOiHV29kMhD
        mnOmMi7ss+32Jfus9f/nTUrZmh5Ey0r5QcXPF3oZoFELqPE8VYHqPS+m
        -----END PRIVATE KEY-----

        """
}
